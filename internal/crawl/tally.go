package crawl

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

// tally counts what a run does. It is safe for concurrent use.
type tally struct {
	pages, recrawls, requests, errors, bytes, robots, added, outside, commits atomic.Uint64

	traps   trapTally
	answers answerTally
	gaveUp  gaveUpTally
	pace    paceTally
}

// request counts a request that ended. What never left is none.
func (t *tally) request(q *requestlog.Request) {
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

// committed counts what a commit did.
func (t *tally) committed(b *batch) {
	t.added.Add(uint64(b.result.Added))
	t.gaveUp.count(b.rows.Done)
	for reason, n := range b.result.TrappedBy {
		t.traps.count(reason, n)
	}
}

func (t *tally) load() Rates {
	return Rates{
		Pages: t.pages.Load(), Recrawls: t.recrawls.Load(), Requests: t.requests.Load(), Errors: t.errors.Load(),
		Bytes: t.bytes.Load(), Robots: t.robots.Load(), Added: t.added.Load(), Outside: t.outside.Load(),
		Commits: t.commits.Load(),
	}
}

// meter keeps the counts of the last seconds, for rates.
type meter struct {
	at   [10]time.Time
	seen [10]Rates
	n    int
}

func (m *meter) tick(now time.Time, r Rates) {
	m.at[m.n%len(m.at)], m.seen[m.n%len(m.seen)] = now, r
	m.n++
}

// rates are pages and bytes a second since the oldest tick.
func (m *meter) rates(now time.Time, r Rates) (pages, bytes float64) {
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

// gaveUpTally counts URLs that were given up.
type gaveUpTally struct {
	statuses [600]atomic.Uint64
	reasons  [256]atomic.Uint64 // by storage.Reason
}

// count counts the outcomes of a commit that are failures, those of recrawls too.
func (t *gaveUpTally) count(done []storage.Done) {
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

func (t *gaveUpTally) load() map[string]uint64 {
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

// trapTally counts refused URLs by reason. It is safe for any number of goroutines.
type trapTally struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func (t *trapTally) count(reason storage.Trap, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]uint64)
	}
	t.counts[reason.String()] += uint64(n)
}

// load is a copy of the counts; nil if nothing was refused.
func (t *trapTally) load() map[string]uint64 {
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

// paceTally counts gaps.
type paceTally struct {
	buckets [8]atomic.Uint64 // one more than there are bounds
}

func (t *paceTally) count(q *requestlog.Request) {
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

func (t *paceTally) load() Pace {
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

// answerTally counts responses by status, and requests without a usable one by the kind of failure.
// Lookups of names count too.
type answerTally struct {
	statuses [600]atomic.Uint64
	failures [256]atomic.Uint64 // by fetch.Kind
	crashes  atomic.Uint64
}

func (t *answerTally) count(q *requestlog.Request) {
	switch {
	case q.Status <= 0:
		t.fail(q.Failure)
	case q.Status < len(t.statuses):
		t.statuses[q.Status].Add(1)
	}
}

func (t *answerTally) fail(k fetch.Kind) { t.failures[k].Add(1) }

func (t *answerTally) crash() { t.crashes.Add(1) }

// errors returns the failures by the name of their kind, and the error statuses by their class.
func (t *answerTally) errors() map[string]uint64 {
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

func (t *answerTally) load() map[string]uint64 {
	m := make(map[string]uint64)
	for status := range t.statuses {
		if n := t.statuses[status].Load(); n > 0 {
			m[strconv.Itoa(status)] = n
		}
	}
	return m
}
