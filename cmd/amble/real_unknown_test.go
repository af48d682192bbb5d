//go:build real

package main_test

import (
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"
)

// testKillBeforeRobots kills a crawl while it waits for its first robots.txt, so that it cannot know what Crawl-delay
// the host asks for. The host must be left alone for 10 s after that, though the delay of the settings is 0.
func testKillBeforeRobots(t *testing.T, binary string) {
	const unknown = 10 * time.Second
	asked := make(chan time.Time, 100)
	answer := make(chan struct{})
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- time.Now()
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		http.NotFound(w, r)
	}))
	defer host.Close()
	c := newCrawl(t, binary, &nginx{seeds: []string{host.URL + "/"}}, fast, 0)
	p := c.start(t)
	next(t, asked, p)
	p.signal(syscall.SIGKILL)
	p.wait(10 * time.Second)
	killed := time.Now()
	close(answer)
	p = c.start(t)
	waited := next(t, asked, p).Sub(killed)
	c.finish(t, p)
	t.Logf("%s from the kill to the next request", waited.Round(time.Millisecond))
	if waited < unknown {
		t.Errorf("the host was asked again %s after the kill, want %s", waited, unknown)
	}
}

// next waits for the next request that p makes.
func next(t *testing.T, asked <-chan time.Time, p *process) time.Time {
	t.Helper()
	select {
	case at := <-asked:
		return at
	case <-time.After(time.Minute):
		t.Fatalf("the host was not asked in a minute\n%s", tail(p.output.String()))
		return time.Time{}
	}
}
