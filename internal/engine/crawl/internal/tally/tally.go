// Package tally counts what a run does.
package tally

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
)

// Tally counts what a run does. The zero value counts from zero. It is safe for concurrent use.
type Tally struct {
	// Those that its users count themselves.
	Recrawls, Unchanged, UnchangedBytes, Robots, Commits atomic.Uint64

	pages, requisites, requests, errors, bytes, added, outside atomic.Uint64

	traps   counts[storage.Trap]  // refused URLs
	answers counts[storage.Cause] // responses, requests without a usable one, lookups that failed
	gaveUp  counts[storage.Cause] // URLs that were given up
	pace    pace

	kept marks.Totals // over all runs, with what is being committed: the committer's while the crawl runs
}

// AddContent counts a response with content: a page, or what pages are made of.
func (t *Tally) AddContent(isRequisite bool) {
	if isRequisite {
		t.requisites.Add(1)
		return
	}
	t.pages.Add(1)
}

// AddUnchanged counts a recrawl that found the page as it was.
func (t *Tally) AddUnchanged(bytes uint64) {
	t.Unchanged.Add(1)
	t.UnchangedBytes.Add(bytes)
}

// Rates are the counts of one run.
type Rates struct {
	Pages      uint64 `json:"pages"`                // responses with content
	Requisites uint64 `json:"requisites,omitempty"` // the same of what pages are made of, which are no pages
	recrawl.Yield
	Requests uint64 `json:"requests"` // that left, for pages and for robots.txt, broken off or not
	Errors   uint64 `json:"errors"`   // of these, those without a response, and 5xx; not those that amble broke off
	Bytes    uint64 `json:"bytes"`    // of the bodies received
	Robots   uint64 `json:"robots"`   // robots.txt files judged
	Added    uint64 `json:"added"`    // URLs that were new
	Outside  uint64 `json:"outside"`
	Commits  uint64 `json:"commits"`
}

// Request counts a request that ended. What never left is none. first says that it is an error, and the first of its
// kind.
func (t *Tally) Request(q *requestlog.Request) (first bool) {
	t.pace.count(q)
	switch {
	case q.Status <= 0:
		first = t.NameFailed(q.Failure)
	case q.Status <= maxStatus:
		first = t.answers.add(storage.StatusCause(q.Status), 1) == 1 && q.Status >= 500
	}
	switch {
	case q.Status > 0:
		t.bytes.Add(uint64(q.BodyBytes))
		if q.Status >= 500 {
			t.errors.Add(1)
		}
	case q.Failure != fetch.KindCanceled:
		t.errors.Add(1)
	case !q.Sent:
		return first
	}
	t.requests.Add(1)
	return first
}

// NameFailed counts a lookup of a name that failed. first is as that of Request.
func (t *Tally) NameFailed(k fetch.Kind) (first bool) {
	n := t.answers.add(storage.ReasonCause(storage.ReasonFetch+storage.Reason(k)), 1)
	return n == 1 && k != fetch.KindCanceled
}

// Crash counts a lease whose work ended in a panic.
func (t *Tally) Crash() { t.answers.add(storage.ReasonCause(storage.ReasonCrash), 1) }

// LostRequest counts a request that may have been sent, before a panic took its result.
func (t *Tally) LostRequest() {
	t.requests.Add(1)
	t.errors.Add(1)
}

// Committed counts what a commit did.
func (t *Tally) Committed(done []storage.Done, r *storage.Result) {
	t.added.Add(uint64(r.Added))
	for i := range done {
		if o := &done[i].Outcome; o.State == storage.Failed {
			t.gaveUp.add(causeOf(o), 1)
		}
	}
	for reason, n := range r.TrappedBy {
		t.traps.add(reason, uint64(n))
	}
}

// Restore reads the totals of earlier runs.
func (t *Tally) Restore(s interface{ Mark(string) ([]byte, error) }) error {
	encoded, err := s.Mark(marks.Sums)
	if err == nil {
		t.kept, err = marks.DecodeTotals(encoded)
	}
	return err
}

// Keep adds what a commit has passed to the totals, and sets their mark. A second attempt at the commit adds nothing.
func (t *Tally) Keep(passed *marks.Totals, setMark func(name string, value []byte)) {
	if passed.IsZero() {
		return
	}
	t.outside.Add(passed.Outside)
	t.kept.Add(passed)
	*passed = marks.Totals{}
	setMark(marks.Sums, t.kept.Encode())
}

// Rates returns the counts.
func (t *Tally) Rates() Rates {
	return Rates{
		Pages: t.pages.Load(), Requisites: t.requisites.Load(), Yield: recrawl.Yield{
			Recrawls: t.Recrawls.Load(), Unchanged: t.Unchanged.Load(), UnchangedBytes: t.UnchangedBytes.Load(),
		},
		Requests: t.requests.Load(), Errors: t.errors.Load(),
		Bytes: t.bytes.Load(), Robots: t.Robots.Load(), Added: t.added.Load(), Outside: t.outside.Load(),
		Commits: t.Commits.Load(),
	}
}

// Traps returns the refused URLs by reason.
func (t *Tally) Traps() map[string]uint64 { return t.traps.by(storage.Trap.String) }

// Failed returns the URLs that were given up, by reason, those of recrawls too.
func (t *Tally) Failed() map[string]uint64 { return t.gaveUp.by(inspect.CauseName) }

// Statuses returns the responses by status.
func (t *Tally) Statuses() map[string]uint64 { return t.answers.by(statusName) }

// Errors returns the failures by the name of their kind, and the error statuses by their class.
func (t *Tally) Errors() map[string]uint64 { return t.answers.by(errorName) }

// Pace returns how the gaps between requests compare with the delays.
func (t *Tally) Pace() Pace { return t.pace.load() }

// Meter keeps the counts of the last seconds, for rates. One goroutine owns it.
type Meter struct {
	at   [10]time.Time
	seen [10]Rates
	n    int
}

// Tick takes note of the counts at a time, once a second.
func (m *Meter) Tick(now time.Time, r Rates) {
	m.at[m.n%len(m.at)], m.seen[m.n%len(m.seen)] = now, r
	m.n++
}

// Rates returns pages and bytes a second since the oldest tick.
func (m *Meter) Rates(now time.Time, r Rates) (pages, bytes float64) {
	if m.n == 0 {
		return 0, 0
	}
	oldest := 0
	if m.n > len(m.at) {
		oldest = m.n % len(m.at)
	}
	seconds := now.Sub(m.at[oldest]).Seconds()
	if seconds < 0.5 {
		return 0, 0
	}
	return float64(r.Pages-m.seen[oldest].Pages) / seconds, float64(r.Bytes-m.seen[oldest].Bytes) / seconds
}

// maxStatus is the highest HTTP status with a count of its own.
const maxStatus = 599

// causeOf returns why a URL was given up.
func causeOf(o *storage.Outcome) storage.Cause {
	if o.Reason == storage.ReasonStatus && o.Status <= maxStatus {
		return storage.StatusCause(int(o.Status))
	}
	return storage.ReasonCause(o.Reason)
}

// statusName is the name of the status of a response; empty: there was none.
func statusName(c storage.Cause) string {
	if status := c.Status(); status > 0 {
		return strconv.Itoa(status)
	}
	return ""
}

// errorName is the name of a failure, or the class of an error status; empty: it is no error.
func errorName(c storage.Cause) string {
	switch status := c.Status(); {
	case status == 0:
		return inspect.ReasonName(c.Reason())
	case status >= 400:
		return "status_" + strconv.Itoa(status/100) + "xx"
	}
	return ""
}

// counts counts things by what they are. The zero value counts from zero. It is safe for concurrent
// use.
type counts[K comparable] struct {
	mu sync.Mutex
	of map[K]uint64
}

// add adds n, and returns the new count.
func (c *counts[K]) add(k K, n uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[K]uint64)
	}
	n += c.of[k]
	c.of[k] = n
	return n
}

// by returns the counts by name; nil: nothing was counted. What has no name is left out.
func (c *counts[K]) by(name func(K) string) (byName map[string]uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, n := range c.of {
		if of := name(k); of != "" {
			if byName == nil {
				byName = make(map[string]uint64)
			}
			byName[of] += n
		}
	}
	return byName
}

// Pace is how the gaps between the requests of this run to the same host compare with the delay in
// force, as the crawler saw them. A server's own record is the better witness.
type Pace struct {
	Gaps       uint64       `json:"gaps"`       // that a delay applied to
	Violations uint64       `json:"violations"` // gaps below the delay
	Buckets    []PaceBucket `json:"buckets"`
}

// PaceBucket counts gaps by how often the delay goes into them.
type PaceBucket struct {
	Label string  `json:"label"`
	Below float64 `json:"below,omitzero"` // the bound, of the ratio; absent: there is none
	Count uint64  `json:"count"`
}

// paceBounds are the bounds of the buckets; the first is the promise.
func paceBounds() []float64 { return []float64{1, 1.01, 1.1, 1.5, 2, 5, 20} }

// pace counts gaps.
type pace struct {
	buckets [8]atomic.Uint64 // one more than there are bounds
}

func (t *pace) count(q *requestlog.Request) {
	if q.Gap < 0 || q.Delay <= 0 {
		return
	}
	t.buckets[paceBucket(q.Gap, q.Delay)].Add(1)
}

func paceBucket(gap, delay time.Duration) int {
	bounds := paceBounds()
	if gap < delay { // exactly, whatever the ratio is rounded to
		return 0
	}
	for i, bound := range bounds[1:] {
		if gap.Seconds() < bound*delay.Seconds() {
			return i + 1
		}
	}
	return len(bounds)
}

func (t *pace) load() Pace {
	p := Pace{}
	bounds := paceBounds()
	below := 0.0
	for i := range t.buckets {
		b := PaceBucket{Count: t.buckets[i].Load()}
		switch {
		case i == 0:
			b.Label, b.Below = "under the delay", bounds[0]
		case i == len(bounds):
			b.Label = "from " + ratio(below)
		default:
			b.Label, b.Below = ratio(below)+" to "+ratio(bounds[i]), bounds[i]
		}
		below = b.Below
		p.Gaps += b.Count
		p.Buckets = append(p.Buckets, b)
	}
	p.Violations = p.Buckets[0].Count
	return p
}

func ratio(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) + "×" }

// Add adds the counts of another crawl.
func (r *Rates) Add(more Rates) {
	r.Yield.Add(&more.Yield)
	r.Pages, r.Requisites, r.Requests = r.Pages+more.Pages, r.Requisites+more.Requisites, r.Requests+more.Requests
	r.Errors, r.Bytes, r.Robots = r.Errors+more.Errors, r.Bytes+more.Bytes, r.Robots+more.Robots
	r.Added, r.Outside, r.Commits = r.Added+more.Added, r.Outside+more.Outside, r.Commits+more.Commits
}

// Add adds the gaps of another crawl.
func (p *Pace) Add(more *Pace) {
	p.Gaps, p.Violations = p.Gaps+more.Gaps, p.Violations+more.Violations
	buckets := make([]PaceBucket, max(len(p.Buckets), len(more.Buckets)))
	copy(buckets, p.Buckets)
	for i, b := range more.Buckets {
		b.Count += buckets[i].Count
		buckets[i] = b
	}
	p.Buckets = buckets
}
