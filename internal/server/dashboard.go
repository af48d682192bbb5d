package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/crawl"
)

// pages are the files of the dashboard. dashboard/vendor holds third-party files with their
// licences.
//
//go:embed dashboard
var pages embed.FS

// pagePolicy lets a page of the dashboard load from and connect to this server only.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

// dashboard serves the files, each under its own pattern.
func dashboard(mux *http.ServeMux) error {
	return fs.WalkDir(pages, "dashboard", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := pages.ReadFile(name)
		if err != nil {
			return err
		}
		pattern := "GET " + name[len("dashboard"):]
		if path.Base(name) == "index.html" {
			pattern = "GET /{$}"
		}
		mux.Handle(pattern, file(path.Base(name), content))
		return nil
	})
}

// file serves a file that does not change while the process runs.
func file(name string, content []byte) http.Handler {
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	})
}

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

func (s *Server) historyAPI(api huma.API) {
	handle(api, operation("GET", "/history", "crawl-history", "The past of the crawl, as columns"),
		func(_ context.Context, q *historyQuery) (*object[historySum], error) {
			return answer(historySum{History: s.recorder.history(slices.Index(windows(), q.Window))}, nil)
		})
}
