package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/crashes"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// The death of a process is an end that it did not begin itself: a fault that no recover catches, a
// signal, or lack of memory. A URL that was in flight at each of three consecutive deaths is set
// aside with the reason crash. The start ledger has the URLs in flight. The next process counts
// them when it opens the ledger, in the transaction that settles it.

const (
	// FatalDeaths is the number of consecutive deaths after which a URL is set aside.
	FatalDeaths = 3
	// A URL that was in flight at FatalDeaths-1 deaths is a suspect. The first suspect waits for
	// SuspectAfter, each further one for suspectEvery longer. So a death seldom finds more than one
	// suspect in flight, and one soon after the start finds none. MaxSuspense bounds these waits.
	SuspectAfter, suspectEvery, MaxSuspense = 3 * time.Second, 2 * time.Second, 6 * time.Second
)

// deathKey returns the name of a request in the mark.
func deathKey(q *requestlog.Request) string {
	if q.Kind == requestlog.Robots {
		return frontier.Robots.String() + " " + ownerOf(q).String()
	}
	return frontier.Page.String() + " " + q.URL.String()
}

// ownerOf returns the origin that a robots.txt was fetched for.
func ownerOf(q *requestlog.Request) weburl.Origin {
	if q.For != (weburl.Origin{}) {
		return q.For
	}
	return q.URL.Origin()
}

// countDeath counts the death of the previous process, if it died, and adds to b the outcomes of
// the requests that were in flight at FatalDeaths of them. It returns the output of these.
func (r *recovery) countDeath(b *storage.Batch) (items []*archive.Item, err error) {
	before, err := r.openDeaths()
	r.suspects = len(before) > 0
	switch {
	case err != nil:
		return nil, err
	case r.ledger.Ended && r.suspects:
		b.Marks[marks.Deaths], r.suspects = nil, false
		return nil, nil
	case !r.ledger.Died: // the end of the machine says nothing about a URL
		return nil, nil
	}
	open, err := r.findOpen()
	if err != nil || len(open) == 0 { // nor does a death with nothing in flight
		return nil, err
	}
	var counts []byte
	var suspects []requestlog.Request
	for i := range open {
		q := &open[i]
		n := before[deathKey(q)] + 1
		switch {
		case n >= FatalDeaths:
			item, err := r.setAside(b, q)
			if err != nil {
				return items, err
			}
			if item != nil {
				items = append(items, item)
			}
			continue
		case n == FatalDeaths-1:
			suspects = append(suspects, *q)
		}
		if len(counts) < marks.MaxDeaths {
			counts = fmt.Appendf(counts, "%d %s\n", n, deathKey(q))
		}
	}
	b.Marks[marks.Deaths], r.suspects = counts, len(counts) > 0
	r.log.Warn("the previous process died with requests in flight", "requests", len(open),
		"also_at_the_death_before", len(suspects))
	return items, r.separate(b, suspects)
}

// openDeaths reads the mark.
func (r *recovery) openDeaths() (map[string]int, error) {
	text, err := r.store.Mark(marks.Deaths)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		n, key, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		count, err := strconv.Atoi(n)
		if !found || err != nil {
			return nil, fmt.Errorf("mark %s: %w", marks.Deaths, storage.ErrCorrupt)
		}
		counts[key] = count
	}
	return counts, nil
}

// findOpen returns the uncommitted requests, each URL once, the latest first. The unsettled part of
// the ledger also has committed requests, which began after a slow one.
func (r *recovery) findOpen() (open []requestlog.Request, err error) {
	latest := make(map[string]requestlog.Request)
	for _, q := range r.started {
		is, err := r.isOpen(&q)
		if err != nil {
			return nil, err
		}
		if key := deathKey(&q); is && !q.Start.Before(latest[key].Start) {
			latest[key] = q
		}
	}
	open = slices.Collect(maps.Values(latest))
	slices.SortFunc(open, func(a, b requestlog.Request) int {
		return cmp.Or(b.Start.Compare(a.Start), cmp.Compare(deathKey(&a), deathKey(&b)))
	})
	return open, nil
}

// isOpen reports whether no outcome of a request is committed.
func (r *recovery) isOpen(q *requestlog.Request) (bool, error) {
	if q.Kind == requestlog.Robots {
		record, err := r.robotsRecord(ownerOf(q))
		answered := !record.Fetched.Before(q.Start.Truncate(time.Millisecond))
		return !answered && !record.Refresh.After(q.Start), err // a failure is retried later
	}
	return r.isOpenSince(q.URL, q.Start.Truncate(time.Second))
}

// isOpenSince reports whether a URL is known, and no outcome of it since a second is committed.
func (r *recovery) isOpenSince(u weburl.URL, since time.Time) (bool, error) {
	head, _, err := r.store.Lookup(u)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return head.Last.At.Before(since), err
}

// robotsRecord returns the stored record of an origin, or the zero Record if there is none or it
// cannot be read.
func (r *recovery) robotsRecord(o weburl.Origin) (robots.Record, error) {
	encoded, err := r.store.Policy(o)
	if err != nil {
		return robots.Record{}, err
	}
	record, err := robots.DecodeRecord(encoded)
	if err != nil {
		return robots.Record{}, nil
	}
	return record, nil
}

// setAside ends a request that was in flight at FatalDeaths deaths. A page fails with the reason
// crash; the origin of a robots.txt is held for the longest time that a Retry-After can demand.
func (r *recovery) setAside(b *storage.Batch, q *requestlog.Request) (*archive.Item, error) {
	r.o.Tally.Crash()
	why := fmt.Sprintf("amble died %d times in a row while it was in flight", FatalDeaths)
	r.log.Error(why+"; the crawl goes on without it. This is a bug: please report it", "url", q.URL.String())
	if q.Kind == requestlog.Robots {
		before, err := r.robotsRecord(ownerOf(q))
		if err != nil {
			return nil, err
		}
		record := crashes.Robots(r.o.Frontier, &before, q.URL, r.o.Opened)
		record.Refresh = r.o.Opened.Add(r.o.Frontier.Robots.MaxRetryAfter)
		encoded, err := record.AppendBinary(nil)
		b.Policies = append(b.Policies, storage.Policy{Origin: ownerOf(q), Record: encoded})
		return nil, err
	}
	head, host, err := r.store.Lookup(q.URL)
	if err != nil {
		return nil, err
	}
	b.Done = append(b.Done, storage.Done{Host: host.ID, Ordinal: head.Ordinal, Origin: head.Origin,
		Priority: head.Priority, Outcome: storage.Outcome{
			State: storage.Failed, Reason: storage.ReasonCrash, At: r.o.Opened, History: head.Last.History,
		}})
	b.Marks[sweep.CrashMark(host.ID)] = []byte(r.o.Version)
	if !r.o.HasOutput {
		return nil, nil
	}
	return r.o.Encoder.Encode(&archive.Visit{Page: &archive.Page{
		URL: q.URL.String(), Depth: int(head.Depth), Attempts: int(head.Last.Attempts) + FatalDeaths,
		FetchedAt: q.Start,
		Reason:    inspect.ReasonName(storage.ReasonCrash), Error: why,
	}})
}

// separate postpones the suspects, each to a time of its own.
func (r *recovery) separate(b *storage.Batch, suspects []requestlog.Request) error {
	every := min(suspectEvery, MaxSuspense/time.Duration(max(len(suspects), 1)))
	for i := range suspects {
		if err := r.postpone(b, &suspects[i], r.o.Opened.Add(SuspectAfter+time.Duration(i)*every)); err != nil {
			return err
		}
	}
	return nil
}

// postpone postpones a suspect. Until then the stored copy of a robots.txt stays in force.
func (r *recovery) postpone(b *storage.Batch, q *requestlog.Request, until time.Time) error {
	if q.Kind == requestlog.Robots {
		before, err := r.robotsRecord(ownerOf(q))
		if err != nil {
			return err
		}
		crash := robots.Outcome{URL: q.URL.String(), Failure: robots.FailureCrash}
		record, _ := r.o.Frontier.Robots.Next(before, crash, r.o.Opened)
		record.Refresh = until
		encoded, err := record.AppendBinary(nil)
		b.Policies = append(b.Policies, storage.Policy{Origin: ownerOf(q), Record: encoded})
		return err
	}
	head, host, err := r.store.Lookup(q.URL)
	if err != nil {
		return err
	}
	o := head.Last
	o.State, o.Due = storage.Retrying, until // At stays: nothing has come since
	b.Done = append(b.Done, storage.Done{Host: host.ID, Ordinal: head.Ordinal, Origin: head.Origin,
		Priority: head.Priority, Outcome: o})
	return nil
}
