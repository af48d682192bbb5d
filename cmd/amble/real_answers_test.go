//go:build real

package main_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// oddAnswers are answers that break off, and one body that comes in chunks of several lengths, by
// path. Each that breaks off is on a host of its own.
func oddAnswers() (broken, equal map[string]string, begin, same string) {
	begin, same = strings.Repeat("<p>as far as it goes</p>", 200), strings.Repeat("<p>always the same</p>", 500)
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
	chunked := head + "Transfer-Encoding: chunked\r\n\r\n"
	broken = map[string]string{
		"/length": head + "Content-Length: 1000000\r\n\r\n" + begin,
		"/chunks": chunked + fmt.Sprintf("%x\r\n%s\r\n10000\r\n", len(begin), begin),
	}
	equal = map[string]string{"/plain": head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(same), same)}
	for _, n := range []int{100, 999, len(same)} {
		var b strings.Builder
		for rest := same; len(rest) > 0; {
			part := rest[:min(n, len(rest))]
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
			rest = rest[len(part):]
		}
		equal[fmt.Sprintf("/by%d", n)] = chunked + b.String() + "0\r\n\r\n"
	}
	return broken, equal, begin, same
}

// serveRaw answers on an address with what is said for each path, and closes the connection.
func serveRaw(t *testing.T, ip string, answers map[string]string) (origin string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", ip+":0"))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, answer)
			_ = c.Close()
		}
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return "http://" + l.Addr().String()
}

// TestRealArchiveOfOddAnswers: programs of others read what is stored of answers that break off,
// and of equal bodies in unequal chunks.
func TestRealArchiveOfOddAnswers(t *testing.T) {
	forgetSettings(t)
	broken, equal, begin, same := oddAnswers()
	want := make(map[string]string)
	server := &nginx{}
	n := 20
	for path, answer := range broken {
		n++
		url := serveRaw(t, fmt.Sprintf("127.0.0.%d", n), map[string]string{path: answer}) + path
		want[url] = begin
	}
	origin := serveRaw(t, "127.0.0.20", equal)
	for path := range equal {
		want[origin+path] = same
	}
	for url := range want {
		server.seeds = append(server.seeds, url)
	}
	c := newCrawl(t, build(t), server, "delay: 1ms", 0)
	p := c.startWith(t, "output.format=warc", "output.prefix=odd", "crawl.give_up_after=1s", "retry.max_attempts=1")
	c.finish(t, p)
	files, err := filepath.Glob(filepath.Join(c.dir, "data", "output", "odd-*.warc.gz"))
	must.True(t, err == nil && len(files) != 0, "WARC files %q: %v", files, err)
	if output, err := command(t, time.Minute, c.binary, "archive", "verify", "-c",
		filepath.Join(c.dir, "config.yaml")); err != nil {
		t.Errorf("amble archive verify: %v\n%s", err, output)
	}
	ours := c.index(t)
	whole := 0
	for _, e := range ours {
		if strings.HasPrefix(e.URL, origin+"/") && e.Status == 200 && e.Mime != warc.MimeRevisit {
			whole++
		}
	}
	assert.True(t, whole == 1, "of %d equal bodies %d are stored", len(equal), whole)
	t.Run("Python", func(t *testing.T) { readWithPython(t, files, ours) })
	t.Run("Node", func(t *testing.T) { readWithNode(t, files, ours) })
	t.Run("Replay", func(t *testing.T) {
		address := startReplay(t, files)
		client := &http.Client{Timeout: 30 * time.Second}
		for _, e := range ours {
			content, known := want[e.URL]
			if !known {
				continue
			}
			resp, err := client.Get("http://" + address + "/real/" + e.Time.Format("20060102150405") + "id_/" + e.URL)
			if err != nil {
				t.Errorf("%s: %v", e.URL, err)
				continue
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || string(body) != content {
				t.Errorf("%s: %s, %d bytes, want %d (%v)", e.URL, resp.Status, len(body), len(content), err)
			}
		}
	})
}

// testKillBeforeRobots kills a crawl while it waits for its first robots.txt, so that it cannot
// know what Crawl-delay the host demands. The host must be left alone for 10 s after that, though
// the delay of the settings is 0.
func testKillBeforeRobots(t *testing.T, binary string) {
	const unknown = 10 * time.Second
	requests := make(chan time.Time, 100)
	answer := make(chan struct{})
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- time.Now()
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
		}
	}))
	defer host.Close()
	c := newCrawl(t, binary, &nginx{seeds: []string{host.URL + "/"}}, fast, 0)
	p := c.start(t)
	next(t, requests, p)
	p.signal(syscall.SIGKILL)
	p.wait(10 * time.Second)
	killed := time.Now()
	close(answer)
	p = c.start(t)
	waited := next(t, requests, p).Sub(killed)
	c.finish(t, p)
	t.Logf("%s from the kill to the next request", waited.Round(time.Millisecond))
	assert.True(t, waited >= unknown, "the host got a request again %s after the kill, want %s", waited, unknown)
}

// next waits for the next request that p makes.
func next(t *testing.T, requests <-chan time.Time, p *process) time.Time {
	t.Helper()
	select {
	case at := <-requests:
		return at
	case <-time.After(time.Minute):
		t.Fatalf("the host got no request in a minute\n%s", tail(p.output.String()))
		return time.Time{}
	}
}

// testPolite crawls a part of the sites with a delay, killed once, and reads the gaps in nginx's
// log: from the end of a request to the start of the next one to the same host. The log has
// milliseconds and cuts off the rest, so a gap may look 1 ms shorter than it was.
func testPolite(t *testing.T, sites []site, binary string) {
	const (
		delay     = 200 * time.Millisecond
		precision = time.Millisecond
		pages     = 60
	)
	server := serve(t, sites, 0)
	c := newCrawl(t, binary, server, "delay: "+delay.String(), pages)
	begun := time.Now()
	p := c.start(t)
	for p.running() && server.served() < pages/2 && time.Since(begun) < time.Minute {
		time.Sleep(5 * time.Millisecond)
	}
	p.signal(syscall.SIGKILL)
	must.True(t, p.wait(10*time.Second) != nil, "the crawl was done before it was killed")
	c.finish(t, c.start(t))
	took := time.Since(begun)
	log := server.stop(t)
	figures(t, "polite", len(pagesOf(log)), len(log), took)
	got := len(c.lines(t))
	assert.True(t, got == pages, "the output has %d pages, crawl.max_pages is %d", got, pages)
	for _, s := range sites {
		all, across := gaps(s, log)
		must.True(t, len(all) >= pages/4 && across != 0,
			"%s: %d gaps, and %s across the kill: too few to mean something", s.name, len(all), across)
		assert.True(t, all[0] >= delay-precision,
			"%s: %s from the end of a request to the start of the next, want %s", s.name, all[0], delay)
		t.Logf("%-10s %d gaps: least %s, median %s, most %s; across the kill %s",
			s.name, len(all), all[0], all[len(all)/2], all[len(all)-1], across)
	}
}

// gaps are the times between the requests to a site, the shortest first, and the one that the kill
// lies in.
func gaps(s site, log []request) (all []time.Duration, across time.Duration) {
	requests := slices.DeleteFunc(slices.Clone(log), func(r request) bool { return r.page.site != s.name })
	slices.SortFunc(requests, func(a, b request) int { return a.start.Compare(b.start) })
	for i := range len(requests) - 1 {
		a, b := requests[i], requests[i+1]
		gap := b.start.Sub(a.end)
		all = append(all, gap)
		if a.run != b.run {
			across = gap
		}
	}
	slices.Sort(all)
	return all, across
}
