package crawl

import (
	"errors"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/recovery"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// requestLog is the request log as the dispatcher, which owns it, writes it.
type requestLog struct {
	*recovery.Requests
	policy requestlog.Policy // of the request that is written
}

// complete logs the request of a result, with its report. What never left the machine is none. The
// log has one wait that a response demands: the longer of Retry-After and RateLimit.
func (l *requestLog) complete(res *work.Result, r *frontier.Report) {
	if !r.Sent {
		return
	}
	lease, q := &res.Lease, &res.Request
	q.RetryAfter = max(q.RetryAfter, r.RateLimit.Hold)
	switch lease.Kind {
	case frontier.Robots:
		if lease.Robots.Origin != lease.URL.Origin() {
			q.For = lease.Robots.Origin
		}
		if rules := res.Robots.Rules; rules != nil {
			l.policy = requestlog.Policy{Record: res.Robots.Record, Packed: res.Robots.Packed, Version: rules.Version()}
			q.Policy = &l.policy
		}
		q.Again = l.Again(lease.URL, lease.Robots.Previous.Fetched)
	case frontier.Page, frontier.Visited:
		l.policy = requestlog.Policy{Record: *lease.Policy, Version: lease.Rules.Version()}
		q.Policy = &l.policy
		q.Allowed, q.Line = lease.Verdict.Allowed, lease.Verdict.Line
		res.Remote.Describe(q)
		q.Again = l.Again(lease.URL, lease.Head.Last.At)
	}
	q.LedgerOffset = res.Offset
	l.Write(q)
}

// ledger is what a crawl needs of the start ledger.
type ledger interface {
	Append(starts.Start) (offset uint64, err error)
	Add(starts.Start) (offset uint64)
	Flush() error
	AppendWait(starts.Wait) error
	AppendEnd(time.Time) error
	Offset() uint64
	Trim(committed uint64) error
	Close() error
}

// startLedger is the start ledger as the dispatcher, which owns it, writes it.
type startLedger struct{ ledger }

// start makes the line of a request for the next Flush, and returns its offset.
func (s startLedger) start(l *frontier.Lease, now time.Time) (offset uint64) {
	start := starts.Start{Host: l.HostName, At: now, Delay: -1, Note: recovery.Note(l)}
	if l.Address.IsValid() {
		start.Address = l.Address.String()
	}
	if l.Learned {
		start.Delay = l.Delay
	}
	return s.Add(start)
}

// wait writes a Retry-After or the reset of a RateLimit: it holds even if this process ends before
// the response is committed. On a full disk no request begins before the commit, so that is no error.
func (s startLedger) wait(l *frontier.Lease, report *frontier.Report) error {
	wait := max(report.RetryAfter, report.RateLimit.Hold)
	if !report.Sent || wait <= l.Delay {
		return nil
	}
	err := s.AppendWait(starts.Wait{Host: l.HostName, At: report.End, Wait: wait})
	if errors.Is(err, storage.ErrNoSpace) {
		return nil
	}
	return err
}
