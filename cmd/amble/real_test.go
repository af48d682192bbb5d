//go:build real

// The tests of this file and of real_*_test.go crawl real documentation, served by a real web
// server on loopback addresses, with the program itself, and hold what it did against what wget
// does, and against nginx's log.
package main_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// fast is the politeness of a crawl without delays.
const fast = "delay: 0s, per_host: 4, per_ip: 4, ip_rate: 0"

// TestReal needs Debian's nginx, wget, python3-doc and postgresql-doc, and installs what is
// missing.
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
	t.Logf("%-6s %5d pages, %5d requests, %6.2f s, %5.0f pages/s", who, pages, requests, took.Seconds(),
		float64(pages)/took.Seconds())
}

// longestPause is the longest time without a request. Where a crawl was slow it tells one long
// wait, such as for a retry, from a machine or a disk that is busy with something else.
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

// checkOnce holds that a crawl without a kill fetches nothing twice, robots.txt included.
func checkOnce(t *testing.T, log []request) {
	t.Helper()
	seen := make(map[page]bool)
	for _, r := range log {
		assert.True(t, !seen[r.page], "%s was fetched twice", r.page)
		seen[r.page] = true
	}
}

// checkRobots holds that nothing was fetched that robots.txt denies, and that there was something
// to deny.
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
	listed := 0
	for p := range refs.sources {
		if denied(p) {
			listed++
		}
	}
	assert.True(t, listed != 0, "no page names anything that robots.txt denies: this proves nothing about robots.txt")
	for _, p := range sorted(fetched) {
		assert.True(t, !denied(p), "%s was fetched and robots.txt denies it", p)
	}
	t.Logf("%4d URLs denied by robots.txt, none of them fetched", listed)
}

// checkLines holds the output against the log: a line for each page, with its status and the digest
// of its content.
func checkLines(t *testing.T, lines map[page]line, fetched map[page]int, refs *references) {
	t.Helper()
	sameSet(t, "the output", lines, "nginx's log", fetched)
	links := 0
	for _, p := range sorted(lines) {
		l := lines[p]
		if l.Status != fetched[p] || l.Attempts != 1 {
			t.Errorf("%s: the output says status %d after %d attempts, the log says %d after 1", p, l.Status,
				l.Attempts, fetched[p])
		}
		if l.Status == 200 && l.Digest != refs.digests[p] {
			t.Errorf("%s: the digest is %s, that of the content %s", p, l.Digest, refs.digests[p])
		}
		assert.True(t, l.Outlinks == len(refs.links[p]), "%s: the output says %d links, and there are %d", p,
			l.Outlinks, len(refs.links[p]))
		links += l.Outlinks
	}
	t.Logf("%d links on %d pages, each page's number as another reader counts them", links, len(lines))
}

// process is a program that the tests started. It dies with the test: at the end of it, and when
// the test binary dies.
type process struct {
	name   string
	id     int
	output lockedBuffer
	ended  chan struct{}
	err    error // how it ended; to be read when ended is closed
}

// start starts a program. Its last signal, should it still run at the end of the test, is SIGTERM,
// then SIGKILL.
func start(t *testing.T, name string, arguments ...string) *process {
	t.Helper()
	p := &process{name: name, ended: make(chan struct{})}
	command := exec.Command(name, arguments...)
	command.Stdout, command.Stderr = &p.output, &p.output
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig comes when the thread ends, so this one stays
		defer runtime.UnlockOSThread()
		err := command.Start()
		if err == nil {
			p.id = command.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = command.Wait()
			close(p.ended)
		}
	}()
	must.Do(t, <-started, "start", name)
	t.Cleanup(func() {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			if p.running() {
				p.signal(signal)
				p.wait(5 * time.Second)
			}
		}
	})
	return p
}

// signal sends a signal, unless the process has ended.
func (p *process) signal(s syscall.Signal) {
	if p.running() {
		syscall.Kill(p.id, s)
	}
}

// running reports whether the process has not ended yet.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// wait waits for the end of the process and returns how it ended: nil is exit code 0.
func (p *process) wait(atMost time.Duration) error {
	select {
	case <-p.ended:
		return p.err
	case <-time.After(atMost):
		return fmt.Errorf("%s still runs after %s", p.name, atMost)
	}
}

// command runs a program to its end and returns what it wrote.
func command(t *testing.T, atMost time.Duration, name string, arguments ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	c := exec.CommandContext(ctx, name, arguments...)
	c.WaitDelay = time.Second
	output, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", c, err)
	}
	return string(output), err
}

// lockedBuffer is a buffer that is written by one goroutine while another one reads it.
type lockedBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}
