package server

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// History is the past of the crawl as columns: the n-th value of each column belongs to the n-th
// instant.
type History struct {
	At       []int64   `json:"at"` // Unix seconds
	Pages    []float64 `json:"pages_per_second"`
	Bytes    []float64 `json:"bytes_per_second"`
	Errors   []float64 `json:"errors_per_second"`
	Known    []int     `json:"known"`   // URLs
	Waiting  []int     `json:"waiting"` // URLs
	Fetched  []int     `json:"fetched"` // URLs
	InFlight []int     `json:"in_flight"`
}

// newHistory returns a History without rows.
func newHistory() History {
	return History{At: []int64{}, Pages: []float64{}, Bytes: []float64{}, Errors: []float64{}, Known: []int{},
		Waiting: []int{}, Fetched: []int{}, InFlight: []int{}}
}

// add adds a row.
func (h *History) add(p *Point) {
	h.At, h.Pages, h.Bytes, h.Errors = append(h.At, p.At), append(h.Pages, p.Pages), append(h.Bytes, p.Bytes),
		append(h.Errors, p.Errors)
	h.Known, h.Waiting, h.Fetched, h.InFlight = append(h.Known, p.Known), append(h.Waiting, p.Waiting),
		append(h.Fetched, p.Fetched), append(h.InFlight, p.InFlight)
}

// Point is one row of a History.
type Point struct {
	At       int64   `json:"at"`
	Pages    float64 `json:"pages_per_second"`
	Bytes    float64 `json:"bytes_per_second"`
	Errors   float64 `json:"errors_per_second"`
	Known    int     `json:"known"`
	Waiting  int     `json:"waiting"`
	Fetched  int     `json:"fetched"`
	InFlight int     `json:"in_flight"`
}

// sample is the state of the crawl at an instant.
type sample struct {
	at                      time.Time
	run                     crawl.Rates
	known, waiting, fetched int
	inFlight                int
}

func sampleOf(s *crawl.Status) sample {
	p := sample{at: s.At, run: s.Run, fetched: s.URLs["fetched"], waiting: s.URLs["queued"] + s.URLs["retrying"],
		inFlight: s.InFlight}
	for _, n := range s.URLs {
		p.known += n
	}
	return p
}

// since returns the point between an earlier sample and this one.
func (p *sample) since(before *sample) Point {
	seconds := p.at.Sub(before.at).Seconds()
	rate := func(now, then uint64) float64 {
		if seconds <= 0 || now < then {
			return 0
		}
		return float64(now-then) / seconds
	}
	return Point{
		At: p.at.Unix(), Pages: rate(p.run.Pages, before.run.Pages), Bytes: rate(p.run.Bytes, before.run.Bytes),
		Errors: rate(p.run.Errors, before.run.Errors),
		Known:  p.known, Waiting: p.waiting, Fetched: p.fetched, InFlight: p.inFlight,
	}
}

// The history is kept at three steps with the same number of samples each. So a short past is fine,
// a long one is coarse, and memory is bounded.
const samplesKept = 600

func steps() []time.Duration {
	return []time.Duration{time.Second, 12 * time.Second, 144 * time.Second}
}

// recorder keeps the history. One goroutine records, any may read.
type recorder struct {
	mu    sync.Mutex
	rings [3]ring
}

// ring keeps the newest samples of one step.
type ring struct {
	kept []sample
	next int // the index of the oldest, when full
}

func (r *ring) newest() *sample {
	if len(r.kept) == 0 {
		return nil
	}
	return &r.kept[(r.next+len(r.kept)-1)%len(r.kept)]
}

func (r *ring) add(p sample) {
	if len(r.kept) <= samplesKept {
		r.kept = append(r.kept, p)
		return
	}
	r.kept[r.next] = p
	r.next = (r.next + 1) % len(r.kept)
}

// record takes one sample. A sample that is no newer than the last is ignored.
func (c *recorder) record(s *crawl.Status) {
	p := sampleOf(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, step := range steps() {
		r := &c.rings[i]
		if last := r.newest(); last == nil || p.at.Sub(last.at) > step-step/4 {
			r.add(p)
		}
	}
}

// history is the past at one step.
func (c *recorder) history(step int) History {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.rings[step]
	h := newHistory()
	for i := 1; i < len(r.kept); i++ {
		before, at := (r.next+i-1)%len(r.kept), (r.next+i)%len(r.kept)
		p := r.kept[at].since(&r.kept[before])
		h.add(&p)
	}
	return h
}

// last is the newest point of the finest step.
func (c *recorder) last() (Point, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.rings[0]
	if len(r.kept) < 2 {
		return Point{}, false
	}
	before := (r.next + len(r.kept) - 2) % len(r.kept)
	return r.newest().since(&r.kept[before]), true
}

// keepHistory samples the crawl once a second until the server closes.
func (s *Server) keepHistory() {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		status := s.here()
		s.recorder.record(&status)
		for _, watch := range s.o.Watches {
			watch(s.o.Now(), &status)
		}
		select {
		case <-s.closing:
			return
		case <-second.C:
		}
	}
}

// windows are the names of the pasts, by step.
func windows() []string { return []string{"10m", "2h", "24h"} }

// historyQuery has the parameters of the request.
type historyQuery struct {
	Window string `query:"window" enum:"10m,2h,24h" default:"10m" doc:"how far back: ten minutes by the second, two hours by 12 seconds, or a day by 144"`
}

func historyAPI(s *Server, api huma.API) {
	Handle(api, Operation("GET", "/history", "crawl-history", "The past of the crawl, as columns"),
		func(ctx context.Context, q *historyQuery) (*Object[historySum], error) {
			window := slices.Index(windows(), q.Window)
			if d := s.divided(ctx); d != nil {
				return answer(historyOf(ctx, d, steps()[window]))
			}
			return answer(historySum{History: s.recorder.history(window)}, nil)
		})
}

// historyOf sums up the pasts of all nodes.
func historyOf(ctx context.Context, d Division, step time.Duration) (all historySum, err error) {
	parts, failed, err := AskNodes[History](ctx, d, AnswerTimeout, asked(ctx))
	all.History = sumHistory(parts, int64(step/time.Second))
	if len(failed) > 0 {
		all.Incomplete = d.Absent(failed)
	}
	return all, err
}

// historySum is the past of all nodes.
type historySum struct {
	History
	Incomplete *Incomplete `json:"incomplete,omitempty"`
}

// sumHistory adds the pasts of nodes, by instants that are a step apart. It ends with the newest instant
// that all nodes know of.
func sumHistory(parts map[string]History, step int64) (sum History) {
	at := make(map[int64]*Point)
	end := int64(math.MaxInt64)
	for _, h := range parts {
		seen := make(map[int64]bool)
		for i, instant := range h.At {
			slot := instant / step * step
			if seen[slot] { // two samples of a node in one step
				continue
			}
			seen[slot] = true
			p := at[slot]
			if p == nil {
				p = &Point{At: slot}
				at[slot] = p
			}
			p.Pages, p.Bytes, p.Errors = p.Pages+h.Pages[i], p.Bytes+h.Bytes[i], p.Errors+h.Errors[i]
			p.Known, p.Waiting = p.Known+h.Known[i], p.Waiting+h.Waiting[i]
			p.Fetched, p.InFlight = p.Fetched+h.Fetched[i], p.InFlight+h.InFlight[i]
		}
		if n := len(h.At); n > 0 {
			end = min(end, h.At[n-1]/step*step)
		}
	}
	sum = newHistory()
	for _, slot := range SortedKeys(at) {
		if slot <= end {
			sum.add(at[slot])
		}
	}
	return sum
}
