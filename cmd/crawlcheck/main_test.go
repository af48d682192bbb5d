package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/crawlcheck"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// actAs is the variable of the environment that makes the test binary a crawler.
const actAs = "CRAWLCHECK_TEST_CRAWLER"

func TestMain(m *testing.M) {
	switch os.Getenv(actAs) {
	case "":
		os.Exit(m.Run())
	case "pages", "hostile":
		crawl(os.Args[1:], os.Getenv(actAs) == "hostile")
	}
}

// crawl requests pages without their robots.txt. A hostile crawler sends garbage too, and holds connections.
func crawl(urls []string, hostile bool) {
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	for _, to := range urls {
		u, err := url.Parse(to)
		if err != nil {
			os.Exit(4)
		}
		for i := 0; hostile && i < 600; i++ {
			if c, err := net.Dial("tcp", u.Host); err == nil {
				fmt.Fprintf(c, "\x00\xff%d GET garbage\r\n", i)
				defer c.Close()
			}
		}
		for range 2 {
			if r, err := client.Get(to); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
			} else if u.Scheme == "https" {
				os.Exit(4)
			}
		}
	}
}

// TestExitCodes: each kind of end has its code.
func TestExitCodes(t *testing.T) {
	self := must.Get(os.Executable())(t)
	for _, c := range []struct {
		name    string
		crawler string
		args    []string
		code    int
		says    string
	}{
		{"help", "", []string{"--help"}, exitHold, "{seedfile}"},
		{"list", "", []string{"--list"}, exitHold, "robots-first (must)"},
		{"no command", "", nil, exitUsage, "needs a command"},
		{"serve with a command", "", []string{"serve", "--", "true"}, exitUsage, "needs a command"},
		{"unknown flag", "", []string{"--nonsense"}, exitUsage, "nonsense"},
		{"bad pattern", "", []string{"--only", "[", "--", "true", "{seed}"}, exitUsage, "syntax error"},
		{"no such station", "", []string{"--only", "x-*", "--", "true", "{seed}"}, exitUsage, "no station matches"},
		{"two ways", "", []string{"--proxy", "--names", "--", "true", "{seed}"}, exitUsage, "exclude"},
		{"no seed", "", []string{"--", "true"}, exitUsage, "would not know where to begin"},
		{"not there", "", []string{"--", "/no/such/crawler", "{seed}"}, exitNotRun, "no such file"},
		{"no request", "", []string{"--", "true", "{seed}"}, exitNotRun, "made no request"},
		{"no robots.txt", "pages", []string{"--only", "robots-first", "--", self, "{seeds}"}, exitBroken,
			"before the robots.txt had arrived"},
		{"proxy", "pages", []string{"--proxy", "--only", "honesty-same", "--", self, "{seed}", "{seed}",
			"{seed}"}, exitHold, "holds"},
		{"https by proxy", "pages", []string{"--proxy", "--https", "--only", "robots-scheme", "--", self, "{seeds}"},
			exitBroken, "ended: exit status 0"},
		{"hostile", "hostile", []string{"--only", "robots-first", "--", self, "{seeds}"}, exitBroken, "robots-first"},
		{"no musts", "pages", []string{"--only", "honesty-same", "--", self, "{seed}", "{seed}",
			"{seed}"}, exitHold, "holds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(actAs, c.crawler)
			if c.crawler == "" {
				os.Unsetenv(actAs)
			}
			var out bytes.Buffer
			code := run(c.args, &out, &out)
			assert.True(t, code == c.code && strings.Contains(out.String(), c.says),
				"exit code %d, want %d with %q:\n%s", code, c.code, c.says, out.String())
		})
	}
}

// TestCompare: reports of the same settings share a column, which has the worst verdict.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, verdict crawlcheck.Verdict) string {
		text := must.Get(json.Marshal(crawlcheck.Report{
			Schema: crawlcheck.Schema, Settings: name,
			Results: []crawlcheck.Result{{Station: "a-b", Level: crawlcheck.Must, Verdict: verdict}},
		}))(t)
		path := filepath.Join(dir, name+string(verdict))
		must.Do(t, os.WriteFile(path, text, 0o600))
		return path
	}
	var out bytes.Buffer
	if code := run([]string{"compare", file("one", crawlcheck.Holds), file("one", crawlcheck.NotShown),
		file("two", crawlcheck.Holds)}, &out, &out); code != exitHold ||
		!strings.Contains(out.String(), "| a-b | must | not shown | holds |\n") ||
		!strings.Contains(out.String(), "| hold | must | 0 | 1 |\n") {
		t.Errorf("%d\n%s", code, out.String())
	}
	assert.Equal(t, run([]string{"compare", os.Args[0]}, &out, &out), exitUsage, "a report that is none")
}

// TestForms: the forms of a report are what they are called.
func TestForms(t *testing.T) {
	self := must.Get(os.Executable())(t)
	t.Setenv(actAs, "pages")
	dir := t.TempDir()
	file := func(form string) string { return filepath.Join(dir, form) }
	var out bytes.Buffer
	code := run([]string{"--only", "robots-first,honesty-*,restart-pace", "--settings", "of <a> test",
		"--html", file("html"), "--junit", file("junit"), "--badge", file("badge"), "--json", "-",
		"--", self, "{seeds}", "{seeds}", "{seeds}"}, &out, io.Discard)
	assert.True(t, code == exitBroken, "exit code %d:\n%s", code, out.String())
	var r crawlcheck.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Schema != crawlcheck.Schema || len(r.Results) != 6 ||
		r.Counts[crawlcheck.Broken] != 2 || r.Counts[crawlcheck.NotRun] != 1 || len(r.Results[0].Proof) == 0 {
		t.Errorf("%v\n%s", err, out.String())
	}
	for form, contents := range map[string][]string{
		"html":  {"of &lt;a&gt; test", `class="bad"`, "How to mend", "robots-first"},
		"junit": {`tests="6" failures="2" skipped="1"`, "broken (must)"}, "badge": {"3 of 5", "#c43"},
	} {
		text := must.Get(os.ReadFile(file(form)))(t)
		for _, content := range contents {
			assert.True(t, bytes.Contains(text, []byte(content)), "%s lacks %q:\n%s", form, content, text)
		}
		if form != "html" {
			assert.NoError(t, xml.Unmarshal(text, new(struct{})), form)
		}
	}
}
