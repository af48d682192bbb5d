package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// chain is a site of n pages, and each links to the next ones.
func chain(host string, n int) testweb.Site {
	routes := testweb.Routes{"/robots.txt": testweb.Robots(""), "/": testweb.Page("root", "/1", "/2")}
	for i := 1; i < n; i++ {
		var links []string
		for next := i + 1; next < min(i+4, n); next++ {
			links = append(links, fmt.Sprintf("/%d", next))
		}
		routes[fmt.Sprintf("/%d", i)] = testweb.Page(strings.Repeat(fmt.Sprintf("page %d ", i), 50), links...)
	}
	return testweb.Site{Host: host, Handler: routes}
}

// files are the files of the output by name, with what is in them.
func (p *program) files() map[string]string {
	p.t.Helper()
	entries := must.Get(os.ReadDir(p.path("data", "output")))(p.t)
	all := make(map[string]string)
	for _, e := range entries {
		text := must.Get(os.ReadFile(p.path("data", "output", e.Name())))(p.t)
		all[e.Name()] = string(text)
	}
	return all
}

// checkPages holds that the files of pages have a line for each of n pages of a host, and no other.
func (p *program) checkPages(files map[string]string, host string, n int) {
	p.t.Helper()
	count := make(map[string]int)
	for name, text := range files {
		if ok, _ := filepath.Match("pages-??????.jsonl", name); !ok {
			continue
		}
		for line := range strings.Lines(text) {
			var page struct{ URL string }
			if err := json.Unmarshal([]byte(line), &page); err != nil {
				p.t.Errorf("%s has %q: %v", name, line, err)
			}
			count[page.URL]++
		}
	}
	for i := range n {
		path := "/"
		if i > 0 {
			path = fmt.Sprintf("/%d", i)
		}
		if got := count[p.web.URL(host, path)]; got != 1 {
			p.t.Errorf("%s has %d lines", path, got)
		}
		delete(count, p.web.URL(host, path))
	}
	if len(count) > 0 {
		p.t.Errorf("there are lines of %v", count)
	}
}

// TestHeavyOlderDatabase: an older copy of the database that is put back costs no complete file. What it
// does not know of is set aside and messages.
func TestHeavyOlderDatabase(t *testing.T) {
	t.Parallel()
	const pages = 300
	site, leave := chain("a.test", pages), make(chan struct{})
	site.Handler.(testweb.Routes)[fmt.Sprint("/", pages*2/3)] = waitFor(leave) // it is killed before
	p := newProgram(t, []testweb.Site{site}, map[string]map[string]any{
		"output": {"format": []string{"jsonl", "warc"}, "max_file": "64KiB"},
	})
	killed := p.amble("run")
	must.Do(t, killed.Start())
	marked := func() bool { // a commit of pages is there: the mark lies within a file
		files, err := filepath.Glob(p.path("data", "output", "pages-*.jsonl.open"))
		return err == nil && len(files) > 0 && p.web.Served() > pages/3
	}
	testkit.Until(t, "a commit", marked)
	must.Do(t, killed.Process.Kill())
	_ = killed.Wait()
	close(leave)
	database := p.path("data", storage.FileName)
	older := must.Get(os.ReadFile(database))(t)
	p.exits(0, "run")
	before := p.files()
	p.checkPages(before, "a.test", pages)

	must.Do(t, os.WriteFile(database, older, 0o600))
	_, messages := p.exits(0, "run")
	after := p.files()
	aside := 0
	for name, text := range before {
		if after[name] == text {
			continue
		}
		aside++
		assert.True(t, after[name+".unmarked"] == text, "%s is neither as it was nor set aside", name)
		if !strings.HasSuffix(name, ".cdxj") && !strings.Contains(messages, "file="+name+" now="+name+".unmarked") {
			t.Errorf("nothing was messages of %s:\n%s", name, messages)
		}
	}
	assert.True(t, aside >= 2, "%d of %d files were set aside", aside, len(before))
	p.checkPages(after, "a.test", pages)
	p.exits(0, "archive", "verify")
}

// TestTakenAway: whoever reads the output may take complete files away at any time, the newest too.
func TestTakenAway(t *testing.T) {
	t.Parallel()
	const pages = 30
	p := newProgram(t, []testweb.Site{chain("a.test", pages)},
		map[string]map[string]any{"output": {"format": []string{"jsonl", "warc"}}})
	all := make(map[string]string)
	for run := range 3 {
		p.exits(0, "run", "--set", fmt.Sprintf("crawl.max_pages=%d", 10*(run+1)))
		for name, text := range p.files() {
			assert.True(t, !strings.Contains(name, ".open") && all[name] == "", "%s is there after run %d", name, run)
			all[name] = text
			must.Do(t, os.Remove(p.path("data", "output", name)))
		}
	}
	p.checkPages(all, "a.test", pages)
}
