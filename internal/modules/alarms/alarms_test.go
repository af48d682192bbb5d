package alarms

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// healthy is the status of a crawl that needs nobody.
func healthy(at time.Time, pages uint64) *crawl.Status {
	s := &crawl.Status{State: "running", Started: at, At: at, Since: at, Hosts: 100, URLs: map[string]int{"queued": 5},
		DataDir: "data"}
	s.Run.Pages, s.Run.Requests = pages, 10*pages
	return s
}

func noTrouble() (string, bool) { return "", false }

// TestConditions: each condition shows when it has held for as long as the table says, and ends when it does not hold
// any more. A crawl that is well has no alarm.
func TestConditions(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	trouble, free := "", uint64(100<<30)
	bad := map[string]func(*crawl.Status){
		"too_early":   func(s *crawl.Status) { s.Pace.Violations = 1 },
		"silent":      func(s *crawl.Status) { s.At = s.At.Add(-11 * time.Second) },
		"stalled":     func(s *crawl.Status) { s.State, s.Reason = "stalled", "no space left" },
		"crashed":     func(s *crawl.Status) { s.Failed = map[string]uint64{"crash": 2} },
		"failing":     func(s *crawl.Status) { s.Run.Errors = s.Run.Requests * 2 / 3 },
		"undelivered": func(*crawl.Status) { trouble = "pages-000001.jsonl: exit status 1" },
		"low_disk":    func(*crawl.Status) { free = 2 << 30 },
		"dead_seeds": func(s *crawl.Status) {
			s.DeadSeeds = &crawl.DeadSeeds{Count: 7, First: []crawl.SeedResult{{URL: "http://a.test/"}}}
		},
		"idle":               func(s *crawl.Status) { s.Run.Pages = 1 },
		"many_walls":         func(s *crawl.Status) { s.Walls = map[string]int{"challenge": 20, "rate": 1} },
		"robots_unreachable": func(s *crawl.Status) { s.Held = map[string]int{"unreachable": 21} },
		"forgotten_pause":    func(s *crawl.Status) { s.State = "paused" },
		"walls":              func(s *crawl.Status) { s.Walls = map[string]int{"challenge": 1} },
		"parked":             func(s *crawl.Status) { s.Parked = 3 },
		"mazes":              func(s *crawl.Status) { s.Traps = map[string]uint64{"maze": 7} },
		"slower_together":    func(s *crawl.Status) { s.Slowdowns = []crawl.Slowdown{{Address: "192.0.2.1"}} },
		"rate_limited":       func(s *crawl.Status) { s.Limits.RateWait = 0.9 * s.At.Sub(begin).Seconds() },
	}
	for _, c := range Table() {
		if c.Holds == nil {
			continue
		}
		spoil := bad[c.Code]
		if spoil == nil {
			t.Errorf("%s has no test", c.Code)
			continue
		}
		w, pages := NewWatch(func() (string, bool) { return trouble, trouble != "" }), uint64(100)
		w.MinFree(1 << 30)
		w.room = func(string) (uint64, uint64, error) { return free, 1000 << 30, nil }
		var shownAt time.Time
		now := begin
		for ; now.Before(begin.Add(c.After + 30*time.Minute)); now = now.Add(10 * time.Second) {
			pages++
			s := healthy(now, pages)
			spoil(s)
			w.Observe(now, s)
			if shownAt.IsZero() && has(w.Alarms(), c.Code) {
				shownAt = now
			}
		}
		if after := shownAt.Sub(begin); shownAt.IsZero() || after < c.After || after > c.After+5*time.Minute {
			t.Errorf("%s shows after %v, want %v", c.Code, after, c.After)
		}
		for _, a := range w.Alarms() {
			assert.True(t, a.Title != "" && a.Text != "" && a.Do != "" && !a.Since.IsZero(), "%s: %+v", c.Code, a)
		}
		trouble, free = "", 100<<30
		for range 100 {
			pages += 50
			now = now.Add(10 * time.Second)
			s := healthy(now, pages)
			s.Limits.RateWait = 1e5
			w.Observe(now, s)
		}
		assert.AtMost(t, len(w.Alarms()), 0, c.Code, "is over, and there")
	}
}

// TestOnlyRequisites: a crawl that fetches what pages are made of, and no page, is not idle.
func TestOnlyRequisites(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := NewWatch(noTrouble)
	for i := range 1000 {
		now := begin.Add(time.Duration(i) * 10 * time.Second)
		s := healthy(now, 1)
		s.Run.Requests, s.Run.Requisites = uint64(10*i), uint64(i)
		if w.Observe(now, s); has(w.Alarms(), "idle") {
			t.Fatalf("after %d requisites the crawl is idle", i)
		}
	}
}

// TestFewRequests: a share of hardly any requests, hosts or seconds is none.
func TestFewRequests(t *testing.T) {
	now := time.Now()
	w := NewWatch(noTrouble)
	s := healthy(now, 1)
	s.Run.Requests, s.Run.Errors, s.Hosts, s.Limits.RateWait = 99, 99, 4, 10
	s.Walls = map[string]int{"rate": 1}
	w.Observe(now.Add(-time.Second), healthy(now, 0))
	w.Observe(now, s)
	w.Observe(now.Add(9*time.Second), s)
	assert.AtMost(t, len(w.Alarms()), 0, "there")
}

// TestLog: an alarm is logged when it begins and when it ends, and metrics have it meanwhile.
func TestLog(t *testing.T) {
	var b strings.Builder
	w := NewWatch(noTrouble)
	w.Log(slog.New(slog.NewTextHandler(&b, nil)))
	var told []string
	w.Notify(func(a *Alarm, ended bool) {
		told = append(told, fmt.Sprint(strings.HasPrefix(a.ID(), "stalled-"), ended))
	})
	now := time.Now()
	value := func() (n float64) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(w)
		families, err := registry.Gather()
		must.True(t, err == nil && len(families) == 1 && len(families[0].Metric) == len(Table())-1,
			"the metrics are %v (%v)", families, err)
		for _, m := range families[0].Metric {
			n += m.GetGauge().GetValue()
		}
		return n
	}
	for range 3 {
		s := healthy(now, 0)
		s.State, s.Reason = "stalled", "no space left"
		w.Observe(now, s)
	}
	assert.Equal(t, value(), 1, "alarms in the metrics")
	w.Observe(now, healthy(now, 0))
	assert.Equal(t, value(), 0, "alarms in the metrics at the end")
	assert.Equal(t, strings.Join(told, ", "), "true false, true true", "others are told")
	text := b.String()
	assert.True(t, strings.Count(text, "code=stalled") == 2 && strings.Contains(text, "no space left") &&
		strings.Contains(text, "the alarm has ended"), "the log is\n%s", text)
}

// TestMerge: the list of a cluster says which node has what, and which nodes do not answer.
func TestMerge(t *testing.T) {
	list := merge(map[string]List{
		"b": {Alarms: []Alarm{{Code: "walls", Severity: Notice}, {Code: "idle", Severity: Warning}}}, "a": {},
	}, &server.Incomplete{Nodes: []string{"c"}, Why: []string{"connection refused"}})
	var got []string
	for _, a := range list.Alarms {
		got = append(got, a.Code+" "+a.Node)
	}
	assert.Equal(t, strings.Join(got, ", "), "lost_node c, idle b, walls b", "the list")
}

// TestDocs: docs/OPERATING.md has the table.
func TestDocs(t *testing.T) {
	text := must.Get(os.ReadFile("../../../docs/OPERATING.md"))(t)
	_, section, _ := strings.Cut(string(text), "\n## Alarms\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var want strings.Builder
	for _, c := range Table() {
		after := "at once"
		if c.After > 0 {
			after = console.Span(c.After)
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s | %s |\n", c.Code, c.Severity, c.Title, after, c.Do)
	}
	assert.Contains(t, section, want.String(), "docs/OPERATING.md should have in its section of alarms")
}

// TestNearlyFull: a disk is nearly full by what has to stay free, or by its size.
func TestNearlyFull(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		free, size, least uint64
		full              bool
	}{
		{100 * gib, 1000 * gib, gib, false}, {3 * gib, 100 * gib, gib, true}, {5 * gib, 100 * gib, gib, false},
		{15 * gib, 1000 * gib, gib, true}, {3 * gib, 100 * gib, 0, false},
	} {
		w := NewWatch(noTrouble)
		w.MinFree(c.least)
		w.room = func(string) (uint64, uint64, error) { return c.free, c.size, nil }
		assert.Equal(t, (w.nearlyFull(&crawl.Status{DataDir: "data"}) != ""), c.full, c)
	}
}
