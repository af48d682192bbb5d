package crawl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// The death of a process is an end that it did not begin itself: a fault that no recover catches, a
// signal, or lack of memory. A URL that was in flight at each of three consecutive deaths is set
// aside with the reason crash. The start ledger has the URLs in flight. The next process counts
// them when it opens the ledger, in the transaction that settles it.

const (
	// markDeaths is the name of the mark with the URLs that were in flight at the last death, each
	// with the number of consecutive deaths.
	markDeaths = "deaths"
	// fatalDeaths is the number of consecutive deaths after which a URL is set aside.
	fatalDeaths = 3
	// A URL that was in flight at fatalDeaths-1 deaths is a suspect. The first suspect waits for
	// suspectAfter, each further one for suspectEvery longer. So a death seldom finds more than one
	// suspect in flight, and one soon after the start finds none. maxSuspense bounds these waits.
	suspectAfter, suspectEvery, maxSuspense = 3 * time.Second, 2 * time.Second, 6 * time.Second
)

// inWork is a request that was in flight when a process died, and has no committed outcome.
type inWork struct {
	url   weburl.URL
	owner weburl.Origin // the origin that a robots.txt was fetched for; zero for a page
	at    time.Time
}

// key returns its name in the mark.
func (w *inWork) key() string {
	if w.owner != (weburl.Origin{}) {
		return frontier.Robots.String() + " " + w.owner.String()
	}
	return frontier.Page.String() + " " + w.url.String()
}

// takeDeaths counts the death of the previous process, if it died, and adds to b the outcomes of
// the requests that were in flight at fatalDeaths of them. It returns the output of these.
func (e *Engine) takeDeaths(b *storage.Batch, debt *storage.Debt, left uncommitted) (items []*archive.Item, err error) {
	before, err := e.openDeaths()
	e.suspects = len(before) > 0
	switch {
	case err != nil:
		return nil, err
	case debt.Ended && e.suspects:
		b.Marks[markDeaths], e.suspects = nil, false
		return nil, nil
	case !debt.Died: // the end of the machine says nothing about a URL
		return nil, nil
	}
	work, err := e.findInWork(left)
	if err != nil || len(work) == 0 { // nor does a death with nothing in flight
		return nil, err
	}
	var counts []byte
	var suspects []inWork
	for i := range work {
		n := before[work[i].key()] + 1
		switch {
		case n >= fatalDeaths:
			item, err := e.setAside(b, &work[i])
			if err != nil {
				return items, err
			}
			if item != nil {
				items = append(items, item)
			}
			continue
		case n == fatalDeaths-1:
			suspects = append(suspects, work[i])
		}
		if len(counts) < maxDeathBytes {
			counts = fmt.Appendf(counts, "%d %s\n", n, work[i].key())
		}
	}
	b.Marks[markDeaths], e.suspects = counts, len(counts) > 0
	e.log.Warn("the previous process died with requests in flight", "requests", len(work),
		"also_at_the_death_before", len(suspects))
	return items, e.separate(b, suspects)
}

// endRequests records that the process is shutting down: in the start ledger if something is in
// flight or uncommitted, and in the last commit if a death before had requests in flight.
func (r *run) endRequests() {
	if r.suspects {
		r.pending.setMark(markDeaths, nil)
	}
	if r.busy == 0 && r.pending.empty() {
		return
	}
	if err := r.ledger.AppendEnd(r.now()); err != nil {
		r.log.Debug("cannot write that no more requests begin", "error", err)
	}
}

// maxDeathBytes bounds the mark.
const maxDeathBytes = 1 << 20

// openDeaths reads the mark.
func (e *Engine) openDeaths() (map[string]int, error) {
	text, err := e.store.Mark(markDeaths)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		n, key, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		count, err := strconv.Atoi(n)
		if !found || err != nil {
			return nil, fmt.Errorf("mark %s: %w", markDeaths, storage.ErrCorrupt)
		}
		counts[key] = count
	}
	return counts, nil
}

// findInWork returns the requests without a committed outcome, each URL once, the latest first. The
// unsettled part of the ledger also has committed requests, which began after a slow one.
func (e *Engine) findInWork(left uncommitted) (work []inWork, err error) {
	latest := make(map[string]inWork)
	for _, s := range left {
		w, ok := inWorkOf(s)
		if !ok {
			continue
		}
		open, err := e.isOpen(&w)
		if err != nil {
			return nil, err
		}
		if key := w.key(); open && !w.at.Before(latest[key].at) {
			latest[key] = w
		}
	}
	for _, w := range latest {
		work = append(work, w)
	}
	slices.SortFunc(work, func(a, b inWork) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.key(), b.key()))
	})
	return work, nil
}

// inWorkOf parses a line of the start ledger. ok is false if its note is not from startNote.
func inWorkOf(s storage.Start) (w inWork, ok bool) {
	parts := strings.SplitN(s.Note, ",", 4)
	if len(parts) != 4 {
		return w, false
	}
	u, err := weburl.Parse(parts[3])
	w = inWork{url: u, at: s.At}
	if parts[0] == frontier.Robots.String() {
		if w.owner = u.Origin(); parts[2] != "" {
			owner, err := weburl.Parse(parts[2])
			w.owner = owner.Origin()
			return w, err == nil
		}
	}
	return w, err == nil
}

// isOpen reports whether no outcome of a request is committed.
func (e *Engine) isOpen(w *inWork) (bool, error) {
	if w.owner != (weburl.Origin{}) {
		record, err := e.robotsRecord(w.owner)
		answered := !record.Fetched.Before(w.at.Truncate(time.Millisecond))
		return !answered && !record.Refresh.After(w.at), err // a failure asks again later
	}
	head, _, err := e.store.Lookup(w.url)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return head.Last.At.Before(w.at.Truncate(time.Second)), err
}

// robotsRecord returns the stored record of an origin, or the zero Record if there is none or it
// cannot be read.
func (e *Engine) robotsRecord(o weburl.Origin) (robots.Record, error) {
	encoded, err := e.store.Policy(o)
	if err != nil {
		return robots.Record{}, err
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return robots.Record{}, nil
	}
	return record, nil
}

// setAside ends a request that was in flight at fatalDeaths deaths. A page fails with the reason
// crash; the origin of a robots.txt is held for the longest time that a Retry-After may ask for.
func (e *Engine) setAside(b *storage.Batch, w *inWork) (*archive.Item, error) {
	e.tally.answers.crash()
	why := fmt.Sprintf("amble died %d times in a row while it was in flight", fatalDeaths)
	e.log.Error(why+"; the crawl goes on without it. This is a bug: please report it", "url", w.url.String())
	if w.owner != (weburl.Origin{}) {
		before, err := e.robotsRecord(w.owner)
		if err != nil {
			return nil, err
		}
		record := e.crashedRobots(&before, w.url, e.opened)
		record.Refresh = e.opened.Add(e.o.Frontier.Robots.MaxRetryAfter)
		encoded, err := record.AppendBinary(nil)
		b.Policies = append(b.Policies, storage.Policy{Origin: w.owner, Record: encoded})
		return nil, err
	}
	head, host, err := e.store.Lookup(w.url)
	if err != nil {
		return nil, err
	}
	b.Done = append(b.Done, storage.Done{Host: host.ID, Ordinal: head.Ordinal, Origin: head.Origin,
		Priority: head.Priority, Outcome: storage.Outcome{
			State: storage.Failed, Reason: storage.ReasonCrash, At: e.opened, History: head.Last.History,
		}})
	b.Marks[crashMark(host.ID)] = []byte(e.o.Version)
	if !e.writes {
		return nil, nil
	}
	return e.encoder.Encode(&archive.Visit{Page: &archive.Page{
		URL: w.url.String(), Depth: int(head.Depth), Attempts: int(head.Last.Attempts) + fatalDeaths, FetchedAt: w.at,
		Reason: inspect.ReasonName(storage.ReasonCrash), Error: why,
	}})
}

// separate postpones the suspects, each to a time of its own.
func (e *Engine) separate(b *storage.Batch, suspects []inWork) error {
	every := min(suspectEvery, maxSuspense/time.Duration(max(len(suspects), 1)))
	for i := range suspects {
		if err := e.postpone(b, &suspects[i], e.opened.Add(suspectAfter+time.Duration(i)*every)); err != nil {
			return err
		}
	}
	return nil
}

// postpone postpones a suspect. Until then the stored copy of a robots.txt stays in force.
func (e *Engine) postpone(b *storage.Batch, w *inWork, until time.Time) error {
	if w.owner != (weburl.Origin{}) {
		before, err := e.robotsRecord(w.owner)
		if err != nil {
			return err
		}
		record, _ := e.o.Frontier.Robots.Next(before, robots.Outcome{URL: w.url.String(), Failure: robots.FailureCrash},
			e.opened)
		record.Refresh = until
		encoded, err := record.AppendBinary(nil)
		b.Policies = append(b.Policies, storage.Policy{Origin: w.owner, Record: encoded})
		return err
	}
	head, host, err := e.store.Lookup(w.url)
	if err != nil {
		return err
	}
	o := head.Last
	o.State, o.Due = storage.Retrying, until // At stays: nothing has come since
	b.Done = append(b.Done, storage.Done{Host: host.ID, Ordinal: head.Ordinal, Origin: head.Origin,
		Priority: head.Priority, Outcome: o})
	return nil
}
