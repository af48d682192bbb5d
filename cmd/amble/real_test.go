//go:build real

// The tests of this file and of real_*_test.go crawl real documentation, served by a real web server on loopback
// addresses, with the program itself, and hold what it did against what wget does, and against nginx's log.
package main_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// fast is the politeness of a crawl that owes its hosts no delay.
const fast = "delay: 0s, per_host: 4, per_ip: 4"

// TestReal needs Debian's nginx, wget, python3-doc and postgresql-doc, and installs what is missing.
func TestReal(t *testing.T) {
	forgetSettings(t)
	sites := install(t)
	binary := build(t)
	var want map[page]int // what a crawl fetches, as the comparison with wget confirmed it
	if !t.Run("Compare", func(t *testing.T) { want = testCompare(t, sites, binary) }) {
		return
	}
	for _, k := range killings {
		t.Run(k.name, func(t *testing.T) { k.test(t, sites, binary, want) })
	}
	t.Run("Polite", func(t *testing.T) { testPolite(t, sites, binary) })
	t.Run("KillBeforeRobots", func(t *testing.T) { testKillBeforeRobots(t, binary) })
}

// forgetSettings takes the settings of whoever runs this test out of the environment.
func forgetSettings(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AMBLE_") {
			t.Setenv(name, value) // so that it comes back at the end
			os.Unsetenv(name)
		}
	}
}

// testCompare crawls with wget and with amble, and returns what amble fetched.
func testCompare(t *testing.T, sites []site, binary string) map[page]int {
	server := serve(t, sites, 0)
	took := wget(t, server)
	log := server.stop(t)
	ofWget := pagesOf(log)
	figures(t, "wget", len(ofWget), len(log), took)

	server = serve(t, sites, 0)
	c := newCrawl(t, binary, server, fast, 0)
	begun := time.Now()
	p := c.start(t)
	c.finish(t, p)
	took = time.Since(begun)
	log = server.stop(t)
	ofAmble := pagesOf(log)
	figures(t, "amble", len(ofAmble), len(log), took)
	t.Logf("       longest time without a request %s", longestPause(log))

	server = serve(t, sites, 0)
	everything := maps.Clone(ofWget)
	maps.Copy(everything, ofAmble)
	refs := readReferences(t, server, sorted(everything))
	server.stop(t)
	compare(t, ofAmble, ofWget, refs)
	checkOnce(t, log)
	checkRobots(t, sites, refs, ofAmble)
	checkLines(t, c.lines(t), ofAmble, refs)
	return ofAmble
}

// figures prints what a crawl did.
func figures(t *testing.T, who string, pages, requests int, took time.Duration) {
	t.Helper()
	t.Logf("%-6s %5d pages, %5d requests, %6.2f s, %5.0f pages/s", who, pages, requests, took.Seconds(), float64(pages)/took.Seconds())
}

// longestPause is the longest time in which nobody asked for anything. Where a crawl was slow it tells one long wait, such as
// for a retry, from a machine or a disk that is busy with something else.
func longestPause(log []request) time.Duration {
	var starts []time.Time
	for _, r := range log {
		starts = append(starts, r.start)
	}
	slices.SortFunc(starts, time.Time.Compare)
	var longest time.Duration
	for i := 1; i < len(starts); i++ {
		longest = max(longest, starts[i].Sub(starts[i-1]))
	}
	return longest
}

// checkOnce holds that a crawl without a kill asks for nothing twice, robots.txt included.
func checkOnce(t *testing.T, log []request) {
	t.Helper()
	seen := make(map[page]bool)
	for _, r := range log {
		if seen[r.page] {
			t.Errorf("%s was asked for twice", r.page)
		}
		seen[r.page] = true
	}
}

// checkRobots holds that nothing was fetched that robots.txt denies, and that there was something to deny.
func checkRobots(t *testing.T, sites []site, refs *references, fetched map[page]int) {
	t.Helper()
	denied := func(p page) bool {
		for _, s := range sites {
			_, folder, found := strings.Cut(strings.TrimSpace(s.robots), "Disallow: ")
			if found && s.name == p.site && strings.HasPrefix(p.uri, folder) {
				return true
			}
		}
		return false
	}
	named := 0
	for p := range refs.ways {
		if denied(p) {
			named++
		}
	}
	if named == 0 {
		t.Error("no page names anything that robots.txt denies: this proves nothing about robots.txt")
	}
	for _, p := range sorted(fetched) {
		if denied(p) {
			t.Errorf("%s was fetched and robots.txt denies it", p)
		}
	}
	t.Logf("%4d URLs denied by robots.txt, none of them fetched", named)
}

// checkLines holds the output against the log: a line for each page, with its status and the digest of its content.
func checkLines(t *testing.T, lines map[page]line, fetched map[page]int, refs *references) {
	t.Helper()
	sameSet(t, "the output", lines, "nginx's log", fetched)
	links := 0
	for _, p := range sorted(lines) {
		l := lines[p]
		if l.Status != fetched[p] || l.Attempts != 1 {
			t.Errorf("%s: the output says status %d after %d attempts, the log says %d after 1", p, l.Status, l.Attempts, fetched[p])
		}
		if l.Status == 200 && l.Digest != refs.digests[p] {
			t.Errorf("%s: the digest is %s, that of the content %s", p, l.Digest, refs.digests[p])
		}
		if l.Outlinks != len(refs.links[p]) {
			t.Errorf("%s: the output says %d links, and there are %d", p, l.Outlinks, len(refs.links[p]))
		}
		links += l.Outlinks
	}
	t.Logf("%d links on %d pages, each page's number as another reader counts them", links, len(lines))
}
