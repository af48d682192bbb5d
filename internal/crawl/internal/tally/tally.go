// Package tally counts what a run does.
package tally

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/storage"
)

// Tally counts what a run does. The zero value counts from zero. It is safe for concurrent use.
type Tally struct {
	// Those that its users count themselves.
	Pages, Recrawls, Robots, Outside, Commits atomic.Uint64

	requests, errors, bytes, added atomic.Uint64

	traps   traps
	answers answers
	gaveUp  gaveUp
	pace    pace
}

// Rates are the counts of one run.
type Rates struct {
	Pages    uint64 `json:"pages"`    // responses with content
	Recrawls uint64 `json:"recrawls"` // requests for pages that had been requested before, except for retries
	Requests uint64 `json:"requests"` // that left, for pages and for robots.txt, broken off or not
	Errors   uint64 `json:"errors"`   // of these, those without a response, and 5xx; not those that amble broke off
	Bytes    uint64 `json:"bytes"`    // of the bodies received
	Robots   uint64 `json:"robots"`   // robots.txt files judged
	Added    uint64 `json:"added"`    // URLs that were new
	Outside  uint64 `json:"outside"`
	Commits  uint64 `json:"commits"`
}

// Request counts a request that ended. What never left is none.
func (t *Tally) Request(q *requestlog.Request) {
	t.answers.count(q)
	t.pace.count(q)
	switch {
	case q.Status > 0:
		t.bytes.Add(uint64(q.BodyBytes))
		if q.Status >= 500 {
			t.errors.Add(1)
		}
	case q.Failure != fetch.KindCanceled:
		t.errors.Add(1)
	case !q.Sent:
		return
	}
	t.requests.Add(1)
}

// NameFailed counts a lookup of a name that failed.
func (t *Tally) NameFailed(k fetch.Kind) { t.answers.fail(k) }

// Crash counts a lease whose work ended in a panic.
func (t *Tally) Crash() { t.answers.crashes.Add(1) }

// LostRequest counts a request that may have been sent, before a panic took its result.
func (t *Tally) LostRequest() {
	t.requests.Add(1)
	t.errors.Add(1)
}

// Committed counts what a commit did.
func (t *Tally) Committed(done []storage.Done, r *storage.Result) {
	t.added.Add(uint64(r.Added))
	t.gaveUp.count(done)
	for reason, n := range r.TrappedBy {
		t.traps.count(reason, n)
	}
}

// Rates returns the counts.
func (t *Tally) Rates() Rates {
	return Rates{
		Pages: t.Pages.Load(), Recrawls: t.Recrawls.Load(), Requests: t.requests.Load(), Errors: t.errors.Load(),
		Bytes: t.bytes.Load(), Robots: t.Robots.Load(), Added: t.added.Load(), Outside: t.Outside.Load(),
		Commits: t.Commits.Load(),
	}
}

// Traps returns the refused URLs by reason; nil if nothing was refused.
func (t *Tally) Traps() map[string]uint64 { return t.traps.load() }

// Failed returns the URLs that were given up, by reason.
func (t *Tally) Failed() map[string]uint64 { return t.gaveUp.load() }

// Statuses returns the responses by status.
func (t *Tally) Statuses() map[string]uint64 { return t.answers.load() }

// Errors returns the failures by the name of their kind, and the error statuses by their class.
func (t *Tally) Errors() map[string]uint64 { return t.answers.errors() }

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

// gaveUp counts URLs that were given up.
type gaveUp struct {
	statuses [600]atomic.Uint64
	reasons  [256]atomic.Uint64 // by storage.Reason
}

// count counts the outcomes of a commit that are failures, those of recrawls too.
func (t *gaveUp) count(done []storage.Done) {
	for i := range done {
		switch o := &done[i].Outcome; {
		case o.State != storage.Failed:
		case o.Reason == storage.ReasonStatus && int(o.Status) < len(t.statuses):
			t.statuses[o.Status].Add(1)
		default:
			t.reasons[o.Reason].Add(1)
		}
	}
}

func (t *gaveUp) load() map[string]uint64 {
	m := make(map[string]uint64)
	for status := range t.statuses {
		if n := t.statuses[status].Load(); n > 0 {
			m[inspect.CauseName(storage.StatusCause(status))] = n
		}
	}
	for reason := range t.reasons {
		if n := t.reasons[reason].Load(); n > 0 {
			m[inspect.ReasonName(storage.Reason(reason))] = n
		}
	}
	return m
}

// traps counts refused URLs by reason. It is safe for any number of goroutines.
type traps struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func (t *traps) count(reason storage.Trap, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]uint64)
	}
	t.counts[reason.String()] += uint64(n)
}

// load is a copy of the counts; nil if nothing was refused.
func (t *traps) load() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
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

// answers counts responses by status, and requests without a usable one by the kind of failure.
// Lookups of names count too.
type answers struct {
	statuses [600]atomic.Uint64
	failures [256]atomic.Uint64 // by fetch.Kind
	crashes  atomic.Uint64
}

func (t *answers) count(q *requestlog.Request) {
	switch {
	case q.Status <= 0:
		t.fail(q.Failure)
	case q.Status < len(t.statuses):
		t.statuses[q.Status].Add(1)
	}
}

func (t *answers) fail(k fetch.Kind) { t.failures[k].Add(1) }

// errors returns the failures by the name of their kind, and the error statuses by their class.
func (t *answers) errors() map[string]uint64 {
	m := make(map[string]uint64)
	for k := range t.failures {
		if n := t.failures[k].Load(); n > 0 {
			m[fetch.Kind(k).String()] = n
		}
	}
	if n := t.crashes.Load(); n > 0 {
		m[inspect.ReasonName(storage.ReasonCrash)] = n
	}
	for status := 400; status < len(t.statuses); status++ {
		if n := t.statuses[status].Load(); n > 0 {
			m["status_"+strconv.Itoa(status/100)+"xx"] += n
		}
	}
	return m
}

func (t *answers) load() map[string]uint64 {
	m := make(map[string]uint64)
	for status := range t.statuses {
		if n := t.statuses[status].Load(); n > 0 {
			m[strconv.Itoa(status)] = n
		}
	}
	return m
}

// Add adds the counts of another crawl.
func (r *Rates) Add(more Rates) {
	r.Pages, r.Recrawls, r.Requests = r.Pages+more.Pages, r.Recrawls+more.Recrawls, r.Requests+more.Requests
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
