package crawl

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/storage"
)

// Pace is how the gaps between the requests of this run to the same host compare with the delay that was in force, as the crawler saw them. A
// server's own record is the better witness.
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

func (t *paceTally) count(q *Request) {
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

// answerTally counts answers by status, and requests without a usable one by the
// kind of failure.
type answerTally struct {
	statuses [600]atomic.Uint64
	failures [256]atomic.Uint64 // by fetch.Kind
	crashes  atomic.Uint64
}

func (t *answerTally) count(q *Request) {
	if q.Status > 0 && q.Status < len(t.statuses) {
		t.statuses[q.Status].Add(1)
	}
}

func (t *answerTally) fail(k fetch.Kind) { t.failures[k].Add(1) }

func (t *answerTally) crash() { t.crashes.Add(1) }

// errors are the failures by the name of their kind, and the error statuses by
// their class.
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
