package main

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// TestSiteLooksUp: the operator of a site finds the cause of a line of his log with a browser, and stops the crawl of
// his host, which lasts over a kill.
func TestSiteLooksUp(t *testing.T) {
	t.Parallel()
	var token atomic.Value
	routes := testweb.Routes{
		"/":     testweb.Page("home", "/list"),
		"/list": testweb.Page("list", "/page"),
		"/page": testweb.Page("page"),
	}
	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, is := token.Load().(string); is && strings.HasPrefix(r.URL.Path, "/.well-known/crawler-proof-") {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, text+"\n")
			return
		}
		routes.ServeHTTP(w, r)
	})
	p := newProgram(t, []testweb.Site{{Host: "site.test", Handler: site}}, map[string]map[string]any{
		"crawl":    {"exit_when_done": false},
		"server":   {"listen": "127.0.0.1:0"},
		"identity": {"url": "https://bot.one.example", "listen": "127.0.0.1:0"},
		"log":      {"level": "info"},
	})
	base, kill := p.public()
	visit := func(form url.Values) string { return p.look(base, form) }
	u := url.Values{"host": {"site.test"}}
	key := regexp.MustCompile(`key=([A-Z2-7]{26})"`)
	token.Store("")
	testkit.Until(p.t, "the host is known", func() bool {
		m := key.FindStringSubmatch(visit(u))
		if m != nil {
			u.Set("key", m[1])
		}
		return m != nil
	})
	token.Store(regexp.MustCompile(`text <code>([a-z2-7]{32})<`).FindStringSubmatch(visit(u))[1])
	testkit.Until(p.t, "all pages are fetched", func() bool { return len(p.web.Requests().Pages()) >= len(routes) })
	p.look(base, url.Values{"host": u["host"], "key": u["key"], "action": {"check"}})
	line := regexp.MustCompile(`(?s)GET http://site\.test:\d+/page</td>.*?<td>found on http://site\.test:\d+/list</td>`)
	testkit.Until(p.t, "the cause of a line is shown", func() bool { return line.MatchString(visit(u)) })
	done := p.look(base, url.Values{"host": u["host"], "key": u["key"], "action": {"stop"}})
	must.True(t, strings.Contains(done, "Nothing is requested of this host any more"), "%v", done)
	kill()
	base, kill = p.public()
	defer kill()
	testkit.Until(p.t, "it is stopped after a kill", func() bool {
		page := visit(u)
		return strings.Contains(page, "never: ") && strings.Contains(page, "Take that back")
	})
	if out, _ := p.exits(0, "optout", "list"); !strings.Contains(out, "asked for by the site") {
		t.Errorf("the operator of the crawler does not see it:\n%s", out)
	}
}

// public starts a crawl, and returns where its public documents are.
func (p *program) public() (base string, kill func()) {
	p.t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	run := p.amble("run")
	run.Stderr = write
	must.Do(p.t, run.Start())
	_ = write.Close()
	kill = func() {
		_ = run.Process.Kill()
		_ = run.Wait()
		_ = read.Close()
	}
	address := regexp.MustCompile(`identity are served" address=(\S+)`)
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, read) }() // ends with the process
			return "http://" + m[1] + "/host", kill
		}
	}
	kill()
	p.t.Fatal("the public documents are not served")
	return "", nil
}

// look sends what a browser does: a form with an action is posted. Too many requests are sent again later.
func (p *program) look(base string, form url.Values) (page string) {
	p.t.Helper()
	testkit.Until(p.t, "the look-up answers", func() bool {
		r, err := http.Get(base + "?" + form.Encode())
		if form.Has("action") {
			r, err = http.PostForm(base, form)
		}
		if err != nil {
			p.t.Fatal(err)
		}
		defer r.Body.Close()
		body := must.Get(io.ReadAll(r.Body))(p.t)
		page = string(body)
		return r.StatusCode == http.StatusOK
	})
	return page
}
