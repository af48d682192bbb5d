//go:build real

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// What the fetchers of docs/fetchers need.
const (
	pythonRequests = "requests==2.32.5"
	playwright     = "playwright-core@1.56.1"
)

// TestRealFetchers crawls with the fetchers of docs/fetchers and no worker: at the server no gap is
// under the delay, nothing is denied, and each page is fetched once.
func TestRealFetchers(t *testing.T) {
	forgetSettings(t)
	binary := build(t)
	sources := must.Get(filepath.Abs("../../docs/fetchers"))(t)
	t.Run("Python", func(t *testing.T) {
		bin := python(t, pythonRequests)
		checkShortLease(t, filepath.Join(bin, "python"), filepath.Join(sources, "fetcher.py"))
		testFetcher(t, binary, "", filepath.Join(bin, "python"), filepath.Join(sources, "fetcher.py"))
	})
	t.Run("Browser", func(t *testing.T) {
		chromium, err := exec.LookPath("chromium")
		node, nodeErr := exec.LookPath("node")
		if err != nil || nodeErr != nil {
			t.Skip("there is no chromium or no node on this machine: apt-get install chromium nodejs npm")
		}
		dir := t.TempDir()
		wrapper := filepath.Join(dir, "chromium")
		must.Do(t, os.WriteFile(wrapper, []byte("#!/bin/sh\necho $$ >\"$0.pid\"\nexec "+chromium+` "$@"`), 0o700))
		t.Setenv("CHROMIUM", wrapper)
		if output, err := command(t, 5*time.Minute, "npm", "install", "--no-audit", "--no-fund", "--prefix", dir,
			playwright); err != nil {
			t.Skipf("%s cannot be had: %v\n%s", playwright, err, tail(output))
		}
		script := filepath.Join(dir, "browser.mjs")
		text, err := os.ReadFile(filepath.Join(sources, "browser.mjs"))
		if err == nil {
			err = os.WriteFile(script, text, 0o600)
		}
		must.Do(t, err)
		checkShortLease(t, node, script)
		testFetcher(t, binary, wrapper+".pid", node, script)
	})
}

// testFetcher runs a fetcher with a crawl that has no workers until nothing is left. One with a browser, whose id a
// file has, loads scripts from another host of the crawl when that may be requested, and survives its browser.
func testFetcher(t *testing.T, binary, browser, interpreter, script string) {
	runsScripts := browser != ""
	const least = 300 * time.Millisecond
	var pages []string
	for i := range 6 {
		pages = append(pages, fmt.Sprintf("/p%d", i))
	}
	handler := testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /secret\n"),
		"/old": testweb.Redirect(http.StatusMovedPermanently, "/new"), "/new": testweb.Page("new"),
		"/picture.png": testweb.Content("image/png", []byte("no picture"))}
	const scripts = "127.1.0.1"
	web := testweb.Serve(t, testweb.Config{Sites: []testweb.Site{
		{Host: "127.0.0.1", Handler: handler},
		{Host: scripts, Handler: testweb.Routes{"/": testweb.Page("scripts"), "/secret/a.js": testweb.Page(""),
			"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /secret\n"),
			"/a.js": testweb.Content("text/javascript",
				[]byte(`document.body.innerHTML += "<a href=/by-script>x</a>"`)),
		}},
	}})
	page := fmt.Sprintf("<html><body>page<script src=%s></script><script src=%s></script>", web.URL(scripts, "/a.js"),
		web.URL(scripts, "/secret/a.js"))
	for _, path := range append(pages, "/by-script") {
		handler[path] = testweb.Content("text/html", []byte(page))
	}
	var killed atomic.Bool
	crash := handler[pages[0]]
	handler["/crash"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if runsScripts && !killed.Swap(true) {
			text, err := os.ReadFile(browser)
			pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			assert.True(t, pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil,
				"the browser %q cannot be killed (%v)", text, err)
		}
		crash.ServeHTTP(w, r)
	})
	links := append(pages, "/secret/a", "/old", "/missing", "/crash")
	html := "<html><body><img src=/picture.png><img src=http://localhost:" + fmt.Sprint(web.Port()) + "/tracker.png>"
	for _, path := range links {
		html += "<a href=" + path + ">x</a>"
	}
	handler["/"] = testweb.Content("text/html", []byte(html))
	dir := t.TempDir()
	settings := fmt.Sprintf(`
data_dir: ./data
crawl: {workers: 0, seeds: [%q, %q]}
output: {format: [jsonl, warc]}
politeness: {delay: %s, ip_rate: 0}
fetch: {allow_private: true, resolver: %s}
server: {listen: 127.0.0.1:0, token: secret, fetch_token: for-fetchers}
`, web.URL("127.0.0.1", "/"), web.URL(scripts, "/"), least, web.ResolverAddr())
	must.Do(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(settings), 0o600))
	t.Chdir(dir)
	crawl := start(t, binary, "run", "-c", "config.yaml")
	address := addressOf(t, dir, crawl)
	t.Setenv("AMBLE_SERVER_FETCH_TOKEN", "for-fetchers")
	t.Setenv("CHROMIUM_ARGS", "--no-sandbox")
	output, err := command(t, 5*time.Minute, interpreter, script, "http://"+address, "farm-1", "15")
	t.Log(tail(output))
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(crawl.output.String()))
	}
	checkCaptures(t, binary, web.URL("127.0.0.1", pages[0]), web.URL(scripts, "/a.js"), runsScripts)
	log := web.Requests()
	for _, gap := range log.Host("127.0.0.1").ShortGaps(least) {
		t.Errorf("%v between %s and %s, want %v", gap.Length, gap.Before.Path, gap.After.Path, least)
	}
	times := make(map[string]int)
	for _, q := range log {
		times[q.Host+q.Path]++
	}
	for _, path := range append(pages, "/", "/old", "/new", "/missing") {
		n := times["127.0.0.1"+path]
		assert.True(t, n == 1, "%s was requested %d times, want once", path, n)
	}
	if n := times["127.0.0.1/crash"]; n != 1 && !runsScripts || n != 2 && runsScripts {
		t.Errorf("a page whose browser is killed the first time was requested %d times", n)
	}
	if found := times["127.0.0.1/by-script"]; runsScripts && (times[scripts+"/a.js"] == 0 || found != 1) {
		t.Errorf("the script was requested %d times, the page that it links to %d times", times[scripts+"/a.js"], found)
	}
	for _, path := range []string{"127.0.0.1/secret/a", "127.0.0.1/picture.png", "127.0.0.1/favicon.ico",
		scripts + "/secret/a.js", scripts + "/favicon.ico", "localhost/tracker.png"} {
		assert.True(t, times[path] <= 0, "%s was requested", path)
	}
}

// checkCaptures checks that the archive is sound, and has a page and the script that it has loaded.
func checkCaptures(t *testing.T, binary, page, script string, runsScripts bool) {
	t.Helper()
	output, err := command(t, time.Minute, binary, "archive", "verify", "-c", "config.yaml")
	if err != nil {
		t.Errorf("%v\n%s", err, tail(output))
	}
	for url, wants := range map[string]bool{page: true, script: runsScripts} {
		output, err := command(t, time.Minute, binary, "archive", "get", "-c", "config.yaml", url)
		if wants && err != nil {
			t.Errorf("%s in the archive: %v\n%s", url, err, tail(output))
		}
	}
}

// checkShortLease gives a fetcher a lease of which too little is left for a request: it gives the lease back and
// requests nothing.
func checkShortLease(t *testing.T, interpreter, script string) {
	web := testweb.Serve(t, testweb.Config{Sites: []testweb.Site{{Host: "127.0.0.1", Handler: testweb.Routes{}}}})
	var given atomic.Bool
	reports := make(chan map[string]any, 10)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/leases", func(w http.ResponseWriter, _ *http.Request) {
		if !given.Swap(true) {
			fmt.Fprintf(w, `{"id":"ID","url":%q,"headers":{},"max_bytes":1000,"seconds":5}`+"\n",
				web.URL("127.0.0.1", "/"))
		}
	})
	mux.HandleFunc("POST /api/v1/leases/ID", func(_ http.ResponseWriter, r *http.Request) {
		var report map[string]any
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&report))
		reports <- report
	})
	api := httptest.NewServer(mux)
	defer api.Close()
	if output, err := command(t, 5*time.Minute, interpreter, script, api.URL, "farm-1", "2"); err != nil {
		t.Fatalf("%v\n%s", err, tail(output))
	}
	close(reports)
	if report := <-reports; report["not_done"] != true || report["sent"] == true {
		t.Errorf("the report of a lease of 5 s is %v, want not_done", report)
	}
	if log := web.Requests(); len(log) > 0 {
		t.Errorf("%s was requested", log[0].Path)
	}
}
