//go:build !core

package alarms

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/system"
)

// Alarm is a condition that holds, and has for long enough to show.
type Alarm struct {
	Code     string    `json:"code" doc:"as in docs/OPERATING.md"`
	Title    string    `json:"title"`
	Severity Severity  `json:"severity" enum:"critical,warning,notice"`
	Text     string    `json:"text" doc:"what is the case"`
	Do       string    `json:"do" doc:"what to do about it"`
	Since    time.Time `json:"since,omitzero"`
	Node     string    `json:"node,omitempty" doc:"of a cluster, which has it"`
}

// The window over which shares are taken, and its samples.
const (
	windowLength = 15 * time.Minute
	sampleEvery  = 30 * time.Second
)

// sample is what a window is the difference of.
type sample struct {
	at               time.Time
	requests, errors uint64
	rateWait         float64
}

// Watch finds out which conditions hold. Its methods are safe for concurrent use.
type Watch struct {
	undelivered func() (string, bool) // which output file is not taken, and why
	room        func(dir string) (free, size uint64, err error)

	mu     sync.Mutex
	notify func(a *Alarm, ended bool) // nil: nobody is told
	log    *slog.Logger               // nil: nothing is logged
	since  map[string]time.Time       // of the conditions that hold
	shown  []Alarm
	pages  uint64 // of the run
	pageAt time.Time
	past   []sample // the oldest first
	least  uint64   // bytes that have to stay free on the disk
	full   string   // which disk is nearly full, as of the newest sample
	seen   bool
}

// NewWatch returns a watch that has seen nothing. undelivered says which output file is not taken, and why.
func NewWatch(undelivered func() (text string, is bool)) *Watch {
	return &Watch{undelivered: undelivered, room: system.Room, since: make(map[string]time.Time)}
}

// Log has alarms logged that begin and end.
func (w *Watch) Log(log *slog.Logger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = log
}

// MinFree says how many bytes have to stay free on the disk.
func (w *Watch) MinFree(least uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.least = least
}

// A disk is nearly full with less room than so many times what has to stay free, or than one part in so many of it.
const (
	lowTimes = 4
	lowShare = 50
)

// nearlyFull says which of the disks of a crawl is nearly full; empty: none is. A disk that cannot be examined is not.
func (w *Watch) nearlyFull(s *crawl.Status) string {
	for _, dir := range []string{s.DataDir, s.OutputDir} {
		free, size, err := w.room(dir)
		if dir != "" && err == nil && (free < lowTimes*w.least || free < size/lowShare) {
			return fmt.Sprintf("%s has %s free of %s; %s must stay free (storage.min_free)", dir,
				console.Size(free), console.Size(size), console.Size(w.least))
		}
	}
	return ""
}

// Notify has f told of alarms that begin and end. It must not wait.
func (w *Watch) Notify(f func(a *Alarm, ended bool)) { w.notify = f }

// ID returns a name of the alarm that no other one has, of this code or another.
func (a *Alarm) ID() string { return fmt.Sprintf("%s-%d", a.Code, a.Since.UnixNano()) }

// Observe takes a status. It is called every second or so.
func (w *Watch) Observe(now time.Time, s *crawl.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.facts(now, s)
	var shown []Alarm
	for _, c := range Table() {
		if c.Holds == nil {
			continue
		}
		text, holds := c.Holds(f)
		if !holds {
			delete(w.since, c.Code)
			continue
		}
		if _, known := w.since[c.Code]; !known {
			w.since[c.Code] = now
		}
		if since := w.since[c.Code]; now.Sub(since) >= c.After {
			shown = append(shown, c.alarm(text, since))
		}
	}
	before := w.shown
	w.shown = shown
	w.logChanges(before, shown)
}

// alarm returns the alarm of a condition.
func (c *Condition) alarm(text string, since time.Time) Alarm {
	return Alarm{Code: c.Code, Title: c.Title, Severity: c.Severity, Text: text, Do: c.Do, Since: since.UTC()}
}

// logChanges logs what has begun and what has ended, and tells of it.
func (w *Watch) logChanges(before, after []Alarm) {
	for i := range after {
		if a := &after[i]; !has(before, a.Code) {
			w.changed(a, false)
		}
	}
	for i := range before {
		if a := &before[i]; !has(after, a.Code) {
			w.changed(a, true)
		}
	}
}

func (w *Watch) changed(a *Alarm, ended bool) {
	if w.notify != nil {
		w.notify(a, ended)
	}
	switch {
	case w.log == nil:
	case ended:
		w.log.Info("the alarm has ended: "+a.Title, "code", a.Code)
	default:
		level := slog.LevelWarn
		if a.Severity == Notice {
			level = slog.LevelInfo
		}
		w.log.Log(context.Background(), level, "alarm: "+a.Title, "code", a.Code, "severity", string(a.Severity),
			"what", a.Text, "do", a.Do)
	}
}

func has(list []Alarm, code string) bool {
	return slices.ContainsFunc(list, func(a Alarm) bool { return a.Code == code })
}

// facts makes the facts of a status, and keeps what those of later ones need.
func (w *Watch) facts(now time.Time, s *crawl.Status) *facts {
	f := &facts{Status: s, now: now, waiting: s.URLs["queued"] + s.URLs["retrying"]}
	if got := s.Run.Pages + s.Run.Requisites; !w.seen || got != w.pages || s.State != "running" {
		w.seen, w.pages, w.pageAt = true, got, now
	}
	f.idle = now.Sub(w.pageAt)
	f.undelivered, _ = w.undelivered()
	at := sample{now, s.Run.Requests, s.Run.Errors, s.Limits.RateWait}
	if n := len(w.past); n > 0 && at.requests < w.past[n-1].requests { // another run, or a node less
		w.past = nil
	}
	for len(w.past) > 1 && now.Sub(w.past[1].at) >= windowLength {
		w.past = w.past[1:]
	}
	if n := len(w.past); n == 0 || now.Sub(w.past[n-1].at) >= sampleEvery {
		w.past = append(slices.Clip(w.past), at)
		w.full = w.nearlyFull(s)
	}
	f.full = w.full
	begin := w.past[0]
	f.past = window{
		at.requests - begin.requests, at.errors - min(begin.errors, at.errors), at.rateWait - begin.rateWait,
		now.Sub(begin.at),
	}
	return f
}

// Alarms returns what shows now, the worst first.
func (w *Watch) Alarms() []Alarm {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.shown)
}

// sortAlarms puts the worst first.
func sortAlarms(list []Alarm) {
	order := []Severity{Critical, Warning, Notice}
	slices.SortStableFunc(list, func(a, b Alarm) int {
		if a.Severity != b.Severity {
			return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
		}
		return strings.Compare(a.Node, b.Node)
	})
}

// Describe implements prometheus.Collector.
func (w *Watch) Describe(all chan<- *prometheus.Desc) { all <- description() }

// Collect implements prometheus.Collector.
func (w *Watch) Collect(all chan<- prometheus.Metric) {
	shown := w.Alarms()
	for _, c := range Table() {
		if c.Holds == nil {
			continue
		}
		value := 0.0
		if has(shown, c.Code) {
			value = 1
		}
		all <- prometheus.MustNewConstMetric(description(), prometheus.GaugeValue, value, c.Code, string(c.Severity))
	}
}

func description() *prometheus.Desc {
	return prometheus.NewDesc("amble_alarm", "Whether an alarm shows, by its code in docs/OPERATING.md.",
		[]string{"code", "severity"}, nil)
}
