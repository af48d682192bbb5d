package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	crawlreport "github.com/amble-crawler/amble/internal/modules/report"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// chaos is a crawl by the real program, killed at random moments until it is done.
type chaos struct {
	hosts, pages int
	delay        time.Duration // the crawl delay of every robots.txt
	kills        int
	life         time.Duration // at most, of a process that is killed

	web *testweb.Web
	dir string
}

// TestChaos is the short form of TestSoakChaos.
func TestChaos(t *testing.T) {
	t.Parallel()
	c := &chaos{hosts: 20, pages: 6, delay: time.Second, kills: 4, life: 2500 * time.Millisecond}
	c.run(t)
}

// remains is what a killed process left.
type remains struct {
	at    time.Time
	final map[string]bool // URLs in a final state
	open  map[string]bool // URLs in the start ledger that no commit settles
}

// run crawls and kills, and then holds what the servers saw against what a polite and lossless
// crawler does.
func (c *chaos) run(t *testing.T) {
	web := testweb.Serve(t, testweb.Config{Sites: c.sites()})
	c.web, c.dir = web, t.TempDir()
	c.configure(t)
	var killed []remains
	for over := false; !over; {
		over = c.live(t, &killed)
	}
	log := web.Requests()
	c.checkGaps(t, log)
	c.checkPages(t, log)
	repeats := c.checkRepeats(t, log, killed)
	setAside := c.checkOutput(t, killed)
	c.checkReport(t, setAside)
	report := c.audit(t)
	repeats += len(log) - len(log.Pages()) - c.hosts // of robots.txt
	if report.Requests < len(log) || report.Again < repeats || report.Lost > 0 || report.Unproven > 0 ||
		report.Hosts != c.hosts {
		t.Errorf("the web served %d requests, %d of them again; the audit says %+v", len(log), repeats, report)
	}
	t.Logf("%d kills, %d requests, %d of them again, %d pages set aside; audit: %+v", len(killed), len(log), repeats,
		setAside, report)
}

// sites are hosts whose pages link to the pages behind them, so that there is something to discover
// until the end, to three that are disallowed, and to one out of scope. The last one is missing. Most take a while, so
// that kills meet requests that are under way.
func (c *chaos) sites() (sites []testweb.Site) {
	for i := range c.hosts {
		routes := testweb.Routes{
			"/robots.txt": testweb.Robots(fmt.Sprintf("User-agent: *\nDisallow: /no/\nCrawl-delay: %g\n",
				c.delay.Seconds())),
			// without one of them, the others are found
			"/": testweb.Page("root", "/1", "/2", "/3", "/no/1", "http://outside.test/"),
		}
		for n := 1; n < c.pages; n++ {
			links := []string{"/", fmt.Sprintf("/no/%d", n%3), "http://outside.test/"}
			for next := n + 1; next < min(n+4, c.pages); next++ {
				links = append(links, fmt.Sprintf("/%d", next))
			}
			page := testweb.Page("page", links...)
			if n == c.pages-1 {
				page = http.NotFoundHandler()
			}
			routes[fmt.Sprintf("/%d", n)] = testweb.Slow(time.Duration((n+i)%4)*150*time.Millisecond, page)
		}
		sites = append(sites, testweb.Site{Host: fmt.Sprintf("h%d.test", i), Handler: routes})
	}
	return sites
}

func (c *chaos) configure(t *testing.T) {
	t.Helper()
	var seeds []string
	for _, host := range c.web.Sites() {
		seeds = append(seeds, c.web.URL(host, "/"))
	}
	text, err := json.Marshal(map[string]any{
		"crawl":      map[string]any{"seeds": seeds, "give_up_after": "1m"},
		"politeness": map[string]any{"delay": "20ms", "ip_rate": 0},
		"fetch": map[string]any{"allow_private": true, "resolver": c.web.ResolverAddr(),
			"contact": "bot@one.example"},
		"output":  map[string]any{"format": []string{"jsonl", "links"}},
		"storage": map[string]any{"min_free": 0},
		"server":  map[string]any{"listen": ""},
		"log":     map[string]any{"level": "error"},
	})
	if err == nil {
		err = os.WriteFile(c.config(), text, 0o644) // JSON is YAML
	}
	must.Do(t, err)
}

func (c *chaos) config() string { return filepath.Join(c.dir, "config.yaml") }
func (c *chaos) data() string   { return filepath.Join(c.dir, "data") }

// amble is a command of the real program: the test binary is one that has main under this name.
func (c *chaos) amble(arguments ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], append(arguments, "-c", c.config())...)
	command.Args[0] = "amble"
	command.Env = append(slices.DeleteFunc(os.Environ(), isSetting), "GORACE=atexit_sleep_ms=0")
	return command
}

// isSetting reports whether a variable of the environment would be read as a setting.
func isSetting(variable string) bool { return strings.HasPrefix(variable, "AMBLE_") }

// live runs a process, and kills it after a while unless there were enough kills. It reports
// whether the crawl is done.
func (c *chaos) live(t *testing.T, killed *[]remains) (over bool) {
	t.Helper()
	var stderr bytes.Buffer
	p := c.amble("run")
	p.Stderr = &stderr
	must.Do(t, p.Start())
	done := make(chan error, 1)
	go func() { done <- p.Wait() }()
	last := len(*killed) == c.kills
	life := rand.N(c.life)
	if last {
		life = 3 * time.Minute
	}
	select {
	case err := <-done:
		must.True(t, err == nil, "the crawler failed: %v\n%s", err, stderr.String())
		return true
	case <-time.After(life):
	}
	if len(*killed)%3 == 1 {
		c.audit(t) // while the crawl runs
	}
	must.Do(t, p.Process.Kill())
	if err := <-done; err == nil {
		return true // it was done just before
	}
	must.True(t, !last, "the crawl does not end")
	// What the process sent before it was killed may be read by a busy web only now.
	must.Do(t, c.web.Settle(t.Context()))
	*killed = append(*killed, c.left(t))
	return false
}

// left reads what a killed process left.
func (c *chaos) left(t *testing.T) remains {
	t.Helper()
	r := remains{at: time.Now(), final: make(map[string]bool), open: make(map[string]bool)}
	if _, err := os.Stat(filepath.Join(c.data(), starts.FileName)); err != nil {
		return r // killed before it began
	}
	s := must.Get(storage.Open(c.data(), storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	mark, err := s.Mark(storage.MarkLedger)
	if err == nil {
		var outcomes uint64
		if outcomes, err = storage.DecodeOffset(mark); err == nil {
			_, err = starts.Read(c.data(), outcomes, boot.ID(), func(_ uint64, start starts.Start) {
				if note := strings.SplitN(start.Note, ",", 4); len(note) == 4 {
					r.open[note[3]] = true
				}
			})
		}
	}
	if err == nil {
		err = s.Hosts(func(h *storage.Host) error {
			_, err := s.URLs(h.ID, 0, 1<<30, func(head storage.Head) {
				if head.Last.State != storage.Queued && head.Last.State != storage.Retrying {
					r.final[h.Queues[head.Origin].Origin.URL(head.RequestURI).String()] = true
				}
			})
			return err
		})
	}
	must.Do(t, err)
	return r
}

// checkGaps: no gap at the server under the delay, and no page before the robots.txt. When a client
// is killed the server knows a little late; there the start of the request counts.
func (c *chaos) checkGaps(t *testing.T, log testweb.Log) {
	t.Helper()
	for _, host := range log.Hosts() {
		for _, g := range log.Host(host).ShortGaps(c.delay) {
			assert.True(t, g.Before.Aborted && g.After.Start.Sub(g.Before.Start) >= c.delay,
				"%s: %v between %s and %s, want %v", host, g.Length, g.Before.Path, g.After.Path, c.delay)
		}
	}
	for _, q := range log.BeforeRobots() {
		t.Errorf("%s%s was fetched before the robots.txt", q.Host, q.Path)
	}
}

// checkPages: every page at least once, nothing that is disallowed.
func (c *chaos) checkPages(t *testing.T, log testweb.Log) {
	t.Helper()
	count := log.Pages().CountByPath()
	for i := range c.hosts {
		for n := range c.pages {
			page := fmt.Sprintf("h%d.test/", i)
			if n > 0 {
				page += fmt.Sprint(n)
			}
			assert.True(t, count[page] != 0, "%s was never fetched", page)
		}
	}
	for page := range count {
		assert.True(t, !strings.Contains(page, "/no/"), "%s is disallowed and was fetched", page)
	}
}

// checkRepeats: a page is fetched again only after a kill that found it leased and not committed.
// It returns how many were.
func (c *chaos) checkRepeats(t *testing.T, log testweb.Log, killed []remains) (repeats int) {
	t.Helper()
	last := make(map[string]testweb.Request)
	for _, q := range log.Pages() {
		u := c.web.URL(q.Host, q.Path)
		before, again := last[u]
		last[u] = q
		if !again {
			continue
		}
		repeats++
		kill := firstAfter(killed, before.Start)
		switch {
		case kill == nil || kill.at.After(q.Start):
			t.Errorf("%s was fetched twice by one process", u)
		case kill.final[u]:
			t.Errorf("%s was fetched again though it was committed", u)
		case !kill.open[u]:
			t.Errorf("%s was fetched and not committed, and is not in the start ledger", u)
		}
	}
	return repeats
}

func firstAfter(killed []remains, at time.Time) *remains {
	for i := range killed {
		if killed[i].at.After(at) {
			return &killed[i]
		}
	}
	return nil
}

// checkOutput: every page has one line of output, and was fetched unless it was in flight at three
// deaths in a row: then the crawl goes on without it. It returns how many were.
func (c *chaos) checkOutput(t *testing.T, killed []remains) (setAside int) {
	t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(c.data(), "output", "pages-*.jsonl")))(t)
	count := make(map[string]int)
	for _, name := range files {
		text := must.Get(os.ReadFile(name))(t)
		for line := range bytes.Lines(text) {
			var page struct{ URL, Reason string }
			must.Do(t, json.Unmarshal(line, &page))
			count[page.URL]++
			if page.Reason == "crash" && deathsInARow(killed, page.URL) >= 3 {
				setAside++
			} else if page.Reason != "" {
				t.Errorf("%s was not fetched: %s", page.URL, page.Reason)
			}
		}
	}
	for u, n := range count {
		assert.True(t, n == 1, "%s has %d lines of output", u, n)
	}
	want := c.hosts * c.pages
	assert.True(t, len(count) == want, "%d pages in the output, want %d", len(count), want)
	return setAside
}

// deathsInARow returns how many kills in a row found a request for a URL in flight. Kills that found
// none at all do not count.
func deathsInARow(killed []remains, u string) (most int) {
	n := 0
	for _, r := range killed {
		switch {
		case r.open[u]:
			n++
		case len(r.open) > 0:
			n = 0
		}
		most = max(most, n)
	}
	return most
}

// checkReport: amble report counts each link of each page once, whatever was fetched again, and knows all pages with
// the link that is broken. Of pages that were set aside nobody has read the links.
func (c *chaos) checkReport(t *testing.T, setAside int) {
	t.Helper()
	out, err := c.amble("report", "--json", "--audit=false").Output()
	must.Do(t, err, "amble report")
	var r crawlreport.Summary
	must.Do(t, json.Unmarshal(out, &r))
	pages, links := c.hosts*(c.pages-1), 0
	for _, l := range r.Broken.List {
		links += int(l.Referrers)
		assert.True(t, len(l.From) == int(l.Referrers) && (l.Status == http.StatusNotFound || l.Reason == "crash"),
			"%+v", l)
	}
	wanted := [5]int{pages, pages, c.hosts, c.hosts * min(3, c.pages-2), c.hosts}
	var denied uint64
	for _, cause := range r.LeftOut.Causes {
		if cause.Cause == "robots" {
			denied = cause.Hosts
		}
	}
	got := [5]int{int(r.NotKept.Outside), int(r.Types[0].Responses), int(r.Statuses["404"]), links, int(denied)}
	if got != wanted && setAside == 0 {
		t.Errorf("links out of scope, pages, missing ones, links to them, hosts with denied ones: %d, want %d: %s", got,
			wanted, out)
	}
}

// audited is what amble audit says.
type audited struct {
	Requests, Again, NoEnd, Lost, Unproven, Hosts int
	Smallest                                      float64 // gap of all hosts, in seconds
}

// audit runs amble audit, which must find no violation and nothing that it cannot tell exactly.
func (c *chaos) audit(t *testing.T) (sum audited) {
	t.Helper()
	out, err := c.amble("audit", "--json").Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && strings.Contains(string(exit.Stderr), "there is no request") {
		return sum
	}
	must.True(t, err == nil, "amble audit: %v\n%s", err, out)
	var report struct {
		Requests  int `json:"requests"`
		Again     int `json:"again"`
		NoEnd     int `json:"no_end_known"`
		Unproven  int `json:"unproven"`
		Lost      int `json:"lost"`
		WallClock int `json:"by_wall_clock"`
		Hosts     []struct {
			Smallest *struct{ Seconds float64 } `json:"smallest_gap"`
		} `json:"hosts"`
	}
	must.Do(t, json.Unmarshal(out, &report))
	sum = audited{Requests: report.Requests, Again: report.Again, NoEnd: report.NoEnd, Lost: report.Lost,
		Unproven: report.Unproven, Hosts: len(report.Hosts)}
	for _, h := range report.Hosts {
		if h.Smallest != nil && (sum.Smallest == 0 || h.Smallest.Seconds < sum.Smallest) {
			sum.Smallest = h.Smallest.Seconds
		}
	}
	assert.True(t, report.WallClock <= report.NoEnd,
		"%d gaps are known by the wall clock only, and %d requests have no end", report.WallClock, report.NoEnd)
	return sum
}
