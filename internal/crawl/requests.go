package crawl

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// requests is the request log of a crawl, and what it needs to know of the process before. The dispatcher owns it.
type requests struct {
	log      *requestlog.Log
	unsaid   unsaid
	failing  bool // the last write failed
	complain func(error)
}

// uncommitted are the requests of the process before that no commit knows of, by their place in the start ledger.
type uncommitted map[uint64]storage.Start

func (u uncommitted) note(place uint64, s storage.Start) { u[place] = s }

// openRequests begins the request log of this process. Of the requests that no commit knows of it writes down those that are not in the log
// either: nobody saw their end. It is done before the debts are committed, so that a crash meanwhile loses none of them.
func (e *Engine) openRequests(boot string, settled, end uint64, left uncommitted) error {
	dir := filepath.Join(e.o.DataDir, requestlog.DirName)
	q := &e.requests
	q.complain = func(err error) {
		e.log.Warn("the request log cannot be written; what it lacks is written later, or counted as lost", "error", err)
	}
	now, uptime := systemClock()
	if uptime > 0 {
		uptime -= now.Sub(e.opened)
	}
	log, err := requestlog.Open(dir, e.o.Requests, requestlog.Process{
		Began: e.opened, Uptime: uptime, Boot: boot, Agent: e.o.Fetch.UserAgent, Tokens: e.o.Frontier.Tokens, Obey: e.o.Frontier.Obey, Place: end,
	})
	if err != nil {
		return err
	}
	q.log = log
	if q.unsaid, err = e.openUnsaid(); err != nil || len(left) == 0 {
		return err
	}
	open := make(map[uint64]bool, len(left))
	for place := range left {
		open[place] = true
	}
	_, err = requestlog.Read(dir, requestlog.Query{Place: settled}, func(r *requestlog.Request) error {
		delete(open, r.Place)
		return nil
	})
	if err != nil {
		return err
	}
	for place, s := range left {
		r, ok := openRequest(s)
		if !ok {
			continue
		}
		if open[place] {
			if err := e.findPolicy(&r); err != nil {
				return err
			}
			r.Place, r.Again = place, q.unsaid.has(r.URL, s.At)
			q.write(&r)
		}
	}
	q.unsaid.add(left)
	return nil
}

// findPolicy finds the robots.txt that a request names, where it is the one that was committed last. Else the process that made the request had
// fetched it anew, and it is in the log.
func (e *Engine) findPolicy(r *requestlog.Request) error {
	if r.Policy == nil {
		return nil
	}
	encoded, err := e.store.Policy(r.URL.Origin())
	if err != nil {
		return err
	}
	if record, err := robots.DecodeRecord(encoded); err == nil && robots.VersionOf(record.Body) == r.Policy.Version {
		r.Policy.Record = record
	}
	return nil
}

// startNote is what the start ledger keeps of a lease beside host, address and delay: its kind, the
// line of robots.txt that allowed it, the version of that file (of the request for a robots.txt:
// the origin that it is for, where that is another), and the URL.
func startNote(l *frontier.Lease) string {
	why := ""
	switch {
	case l.Kind == frontier.Page && l.Rules != nil && !l.Rules.Version().IsZero():
		why = l.Rules.Version().String()
	case l.Kind == frontier.Robots && l.Robots.Origin != l.URL.Origin():
		why = l.Robots.Origin.String()
	}
	return l.Kind.String() + "," + strconv.Itoa(l.Verdict.Line) + "," + why + "," + l.URL.String()
}

// openRequest makes a request of a line of the start ledger; false where the line has no note of ours.
func openRequest(s storage.Start) (r requestlog.Request, ok bool) {
	parts := strings.SplitN(s.Note, ",", 4)
	if len(parts) != 4 {
		return r, false
	}
	line, lineErr := strconv.Atoi(parts[1])
	u, urlErr := weburl.Parse(parts[3])
	address, addressErr := netip.ParseAddr(s.Address)
	if lineErr != nil || urlErr != nil || addressErr != nil {
		return r, false
	}
	r = requestlog.Request{URL: u, Address: address, Sent: true, Start: s.At, Decided: s.At, Delay: s.Delay, Line: line}
	if parts[0] == frontier.Robots.String() {
		r.Kind = requestlog.Robots
	} else {
		r.Allowed = true
	}
	if v, err := robots.ParseVersion(parts[2]); err == nil {
		r.Policy = &requestlog.Policy{Version: v}
	}
	return r, true
}

// logRequest writes down a request that ended. What never left the machine is none.
func (r *run) logRequest(res *result, place uint64) {
	l, q := &res.lease, &res.request
	switch l.Kind {
	case frontier.Robots:
		if !res.robots.Sent {
			return
		}
		q.Kind = requestlog.Robots
		if l.Robots.Origin != l.URL.Origin() {
			q.For = l.Robots.Origin
		}
		if rules := res.robots.Rules; rules != nil {
			q.Policy = &requestlog.Policy{Record: res.robots.Record, Version: rules.Version()}
		}
		q.Again = r.requests.unsaid.again(l, l.Robots.Previous.Fetched)
	case frontier.Page:
		if !res.page.Sent {
			return
		}
		q.Policy = &requestlog.Policy{Record: l.Policy, Version: l.Rules.Version()}
		q.Allowed, q.Line = l.Verdict.Allowed, l.Verdict.Line
		q.Again = r.requests.unsaid.again(l, l.Head.Last.At)
	default:
		return
	}
	q.Place = place
	r.requests.write(q)
}

// write writes a request. The crawl goes on without: the log says itself what it lacks.
func (q *requests) write(r *requestlog.Request) {
	err := q.log.Append(r)
	if err != nil && !q.failing {
		q.complain(err)
	}
	q.failing = err != nil
}

// noteRequest fills in what a worker knows of its request.
func (res *result) noteRequest(resp *fetch.Response, failure *fetch.Error, retryAfter time.Duration) {
	l, q := &res.lease, &res.request
	q.URL, q.Address, q.Decided, q.Delay, q.DelayReason, q.Reason = l.URL, l.Address, l.At, l.Delay, l.DelayReason, l.Reason
	if failure != nil {
		q.Start, q.End, q.Sent, q.Failure = failure.Start, failure.End, failure.Sent, failure.Kind
		return
	}
	q.Start, q.End, q.Sent, q.Status, q.Bytes, q.RetryAfter = resp.Start, resp.End, true, resp.Status, uint64(resp.WireBytes), retryAfter
}

// closeRequests ends the log, if it was begun.
func (e *Engine) closeRequests() error {
	if e.requests.log == nil {
		return nil
	}
	if err := e.requests.log.Close(); err != nil {
		return fmt.Errorf("close the request log: %w", err)
	}
	return nil
}
