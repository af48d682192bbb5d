package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/crawl"
)

var someTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func someStatus() crawl.Status {
	return crawl.Status{
		State: "running", Started: someTime.Add(-75 * time.Second),
		URLs:       map[string]int{"queued": 1200, "retrying": 34, "denied": 5, "fetched": 99},
		HostStates: map[string]int{"leased": 2, "resolving": 1, "waiting": 3, "dormant": 4, "idle": 100},
		InFlight:   2, Run: crawl.Rates{Pages: 1234, Bytes: 3 << 20, Errors: 6},
		Errors: map[string]uint64{"refused": 2, "status_5xx": 3, "dns_not_found": 1, "status_4xx": 9,
			"canceled": 4},
		PagesPerSec: 12.34, BytesPerSec: 2048, Finish: 125,
		Slowest: []crawl.SlowHost{{Host: "slow.example", URLs: 7, Finish: 125}},
	}
}

func texts(rows []row) string {
	var lines []string
	for _, r := range rows {
		lines = append(lines, r.text)
	}
	return strings.Join(lines, "\n")
}

func TestProgressBlock(t *testing.T) {
	wide := `amble: running for 1m 15s; Ctrl-C to stop
  pages     1,234  12.3/s               hosts     3 active, 7 waiting
  received  3.0 MiB  2.0 KiB/s          queue     1,234 URLs
  denied    5 by robots.txt             errors    6
  left      about 2m 5s; slow.example has 7 URLs`
	if got := texts(progressRows(someStatus(), someTime, 80)); got != wide {
		t.Errorf("80 columns:\n%s", got)
	}
	narrow := `amble: running for 1m 15s; Ctrl-C to stop
  pages     1,234  12.3/s
  hosts     3 active, 7 waiting
  received  3.0 MiB  2.0 KiB/s
  queue     1,234 URLs
  denied    5 by robots.txt
  errors    6
  left      about 2m 5s; slow.example has 7 URLs`
	if got := texts(progressRows(someStatus(), someTime, 60)); got != narrow {
		t.Errorf("60 columns:\n%s", got)
	}
	for _, r := range progressRows(someStatus(), someTime, 80) {
		if len(r.text) >= 80 {
			t.Errorf("too wide: %s", r.text)
		}
	}
}

func TestProgressTitles(t *testing.T) {
	s := someStatus()
	s.State = "stopping"
	if got := progressRows(s, someTime,
		80)[0].text; got != "amble: stopping, 2 requests in flight; Ctrl-C again to stop at once" {
		t.Error(got)
	}
	s.State, s.Reason, s.Since = "stalled", "no space left", someTime.Add(-7*time.Second)
	if got := progressRows(s, someTime, 80)[0].text; got != "amble: stalled for 7s; Ctrl-C to stop" {
		t.Error(got)
	}
	if got := stateText(s); !strings.Contains(got, "stalled, since "+instantText(s.Since, s.At)) {
		t.Error(got)
	}
	if got := progressRows(s, someTime, 80)[1]; got.style != styleDanger ||
		!strings.Contains(got.text, "until the disk has room again: no space left") {
		t.Error(got)
	}
	if got := progressRows(crawl.Status{State: "opened"}, someTime, 80)[0].text; got != "amble: reading the database" {
		t.Error(got)
	}
}

// Without a screen there is one line of the log every ten seconds, and none after the end.
func TestProgressInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log, _ := newLogger(&b, config.Log{Level: "info", Format: "text"})
		stop := watch(crawlProgress(someStatus, log), nil)
		time.Sleep(35 * time.Second)
		stop()
		time.Sleep(time.Minute)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines in 35 s:\n%s", len(lines), b.String())
		}
		for _, want := range []string{"level=INFO", "msg=running", "pages=1234", "pages_per_second=12.3",
			"hosts_active=3", "hosts_waiting=7", "queued=1234", "denied=5", "errors=6", `finish="2m 5s"`,
			"slowest_host=slow.example"} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("no %s in %s", want, lines[0])
			}
		}
	})
}

// On a screen the block is drawn at once and again, and gone at the end.
func TestProgressOnAScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{t: t, width: 80}
		s := &screen{w: g, size: func() (int, int) { return 80, 24 }}
		stop := watch(crawlProgress(someStatus, slog.New(slog.DiscardHandler)), s)
		if !strings.Contains(g.String(), "pages     1,234") {
			t.Errorf("not drawn at once: %q", g.String())
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := strings.Count(g.String(), "pages"); n != 1 {
			t.Errorf("%d blocks after 5 s", n)
		}
		stop()
		if g.String() != "" {
			t.Errorf("left at the end: %q", g.String())
		}
	})
}

func TestLogger(t *testing.T) {
	var b bytes.Buffer
	log, _ := newLogger(&b, config.Log{Level: "warn", Format: "json"})
	log.Info("hidden")
	log.Warn("shown", "n", 1)
	if got := b.String(); !strings.HasPrefix(got, "{") || !strings.Contains(got, `"msg":"shown","n":1}`) ||
		strings.Contains(got, "hidden") {
		t.Error(got)
	}
}

func TestStatusNamesLimits(t *testing.T) {
	for want, l := range map[string]crawl.Limits{
		"2.5 requests/s (hosts that were due waited 2m 5s); 2.0 MiB/s; 10.0 KiB/s a host": {
			MaxRate: 2.5, RateWait: 125, Bandwidth: 2 << 20, HostBandwidth: 10 << 10,
		},
		"10.0 KiB/s a host": {HostBandwidth: 10 << 10, Received: 5},
	} {
		s, b := someStatus(), new(strings.Builder)
		if s.Limits = l; printStatus(b, s) != nil || !strings.Contains(b.String(), "limits      "+want+"\n") {
			t.Errorf("the status has no %q:\n%s", want, b)
		}
	}
	b := new(strings.Builder)
	if printStatus(b, someStatus()) != nil || strings.Contains(b.String(), "limits") {
		t.Errorf("limits that nobody has set:\n%s", b)
	}
}

func TestStatusNamesSlowHosts(t *testing.T) {
	s := someStatus()
	s.Slowest = append(s.Slowest, crawl.SlowHost{Host: "next.example.org", URLs: 1, Finish: 60})
	var b strings.Builder
	if err := printStatus(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  6 errors in this run: 3 status_5xx, 2 refused, 1 dns_not_found\n",
		"left        about 2m 5s; slow.example has 7 URLs\n",
		"slowest     slow.example      about 2m 5s for 7 URLs\n            next.example.org  about 1m 0s for 1 URL\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the status has no %q:\n%s", want, b.String())
		}
	}
}

// glass is a little terminal: it understands what screen sends and shows what a person would see.
type glass struct {
	t     *testing.T
	width int

	mu     sync.Mutex
	lines  []string
	column int
}

func (g *glass) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for text := string(b); text != ""; {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			text = g.sequence(text[2:])
			continue
		case text[0] == '\r':
			g.column = 0
		case text[0] == '\n':
			g.lines, g.column = append(g.lines, ""), 0
		default:
			g.put(text[0])
		}
		text = text[1:]
	}
	return len(b), nil
}

func (g *glass) put(c byte) {
	if len(g.lines) == 0 {
		g.lines = []string{""}
	}
	if g.column == g.width {
		g.lines, g.column = append(g.lines, ""), 0
	}
	g.lines[len(g.lines)-1] += string(c)
	g.column++
}

// sequence understands up with erase to the end, and styles.
func (g *glass) sequence(text string) string {
	end := strings.IndexAny(text, "AJm")
	switch text[end] {
	case 'A':
		n := 0
		for _, d := range text[:end] {
			n = n*10 + int(d-'0')
		}
		if n >= len(g.lines) {
			g.t.Errorf("up %d lines of %d", n, len(g.lines)-1)
			n = len(g.lines) - 1
		}
		if !strings.HasPrefix(text[end+1:], "\x1b[J") {
			g.t.Error("moves up and does not erase")
		}
		g.lines = append(g.lines[:len(g.lines)-1-n], "")
	case 'm':
	}
	return text[end+1:]
}

func (g *glass) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.lines, "\n")
}

func TestScreenRedrawsBlock(t *testing.T) {
	g := &glass{t: t, width: 20}
	s := &screen{w: g, size: func() (int, int) { return g.width, 10 }, colour: true}
	s.Draw(row{"one", styleTitle}, row{"two", styleNone})
	if got := g.String(); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	io.WriteString(s, "a line of the log that is longer than the screen is wide\n")
	s.Draw(row{"three", styleDanger}, row{strings.Repeat("x", 100), styleNone}, row{"end", styleNone})
	if got := g.String(); got != "a line of the log th\nat is longer than th\ne screen is wide\nthree\n"+
		strings.Repeat("x", 16)+"...\nend\n" {
		t.Errorf("%q", got)
	}
	s.Draw()
	if got := g.String(); got != "a line of the log th\nat is longer than th\ne screen is wide\n" {
		t.Errorf("%q", got)
	}
}

// A block that is higher than the screen would scroll it, and could not be erased.
func TestScreenFitsTheHeight(t *testing.T) {
	g := &glass{t: t, width: 20}
	s := &screen{w: g, size: func() (int, int) { return 20, 3 }}
	for range 3 {
		s.Draw(row{text: "a"}, row{text: "b"}, row{text: "c"}, row{text: "d"})
	}
	if got := g.String(); got != "a\nb\n" {
		t.Errorf("%q", got)
	}
	s.size = func() (int, int) { return 1, 1 }
	s.Draw(row{text: "a"})
	if got := g.String(); got != "" {
		t.Errorf("%q", got)
	}
}

// When the window becomes narrower, the terminal wraps what is drawn, and all of it has to go.
func TestScreenCountsWrappedRows(t *testing.T) {
	var b bytes.Buffer
	width := 40
	s := &screen{w: &b, size: func() (int, int) { return width, 10 }}
	s.Draw(row{text: strings.Repeat("x", 39)}, row{text: "short"})
	b.Reset()
	width = 13
	s.Draw(row{text: "y"})
	if got := b.String(); got != "\r\x1b[4A\x1b[Jy\n" {
		t.Errorf("%q, want it to go up three lines and one", got)
	}
}

func TestColourOnlyWhereWanted(t *testing.T) {
	var b bytes.Buffer
	s := &screen{w: &b, size: func() (int, int) { return 40, 10 }}
	s.Draw(row{"x", styleTitle})
	if got := b.String(); got != "x\n" {
		t.Errorf("%q", got)
	}
}

func TestScreenManyWriters(t *testing.T) {
	g := &glass{t: t, width: 80}
	s := &screen{w: g, size: func() (int, int) { return 80, 10 }}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				io.WriteString(s, "line\n")
				s.Draw(row{text: "block"}, row{text: "block"})
			}
		})
	}
	wg.Wait()
	if got, want := g.String(), strings.Repeat("line\n", 400)+"block\nblock\n"; got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

func TestNoScreen(t *testing.T) {
	if newScreen(&bytes.Buffer{}) != nil {
		t.Error("a buffer is no terminal")
	}
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if newScreen(file) != nil {
		t.Error("a file is no terminal")
	}
}
