//go:build !core

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage/starts"
)

// TestAuditReadsAbsurdAnswers: a response that demands an absurd delay costs the audit
// nothing, neither its own request nor those behind it.
func TestAuditReadsAbsurdAnswers(t *testing.T) {
	t.Parallel()
	later := func(value string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(http.StatusTooManyRequests)
		})
	}
	no := testweb.Robots("User-agent: *\nDisallow: /no\n")
	sites := []testweb.Site{
		{Host: "number.test", Handler: testweb.Routes{"/robots.txt": no, "/": later("99999999999999999999")}},
		{Host: "date.test", Handler: testweb.Routes{"/robots.txt": no, "/": later("Sun, 01 Nov 2099 00:00:00 GMT")}},
		{Host: "good.test", Handler: testweb.Routes{
			"/robots.txt": no, "/": testweb.Page("root", "/1", "/no/1", "/no/2"),
			"/1": testweb.Slow(500*time.Millisecond, testweb.Page("later", "/no/3")), "/no/3": testweb.Page("no"),
		}},
	}
	p := newProgram(t, sites, map[string]map[string]any{"robots": {"obey": false}})
	p.exits(0, "run")
	out, _ := p.exits(1, "audit", "--json")
	var report struct {
		Requests   int              `json:"requests"`
		Violations int              `json:"all_violations"`
		Damaged    []map[string]any `json:"damaged"`
	}
	must.Do(t, json.Unmarshal([]byte(out), &report))
	if n := len(p.web.Requests()); report.Requests != n || len(report.Damaged) > 0 {
		t.Errorf("the web served %d requests, the audit says %+v", n, report)
	}
	disallowed := 0
	for _, q := range p.web.Requests() {
		if len(q.Path) > 3 && q.Path[:3] == "/no" {
			disallowed++
		}
	}
	assert.True(t, disallowed == 3 && report.Violations == disallowed,
		"%d disallowed pages were fetched, the audit has %d violations", disallowed, report.Violations)
}

// TestAuditAfterKill: pages that were under way when the crawler was killed are judged, also those
// of hosts without a robots.txt.
func TestAuditAfterKill(t *testing.T) {
	t.Parallel()
	var sites []testweb.Site
	leave := make(chan struct{})
	for _, host := range []string{"with.test", "without.test"} {
		routes := testweb.Routes{"/": waitFor(leave)}
		if host == "with.test" {
			routes["/robots.txt"] = testweb.Robots("User-agent: *\nDisallow: /no\n")
		}
		sites = append(sites, testweb.Site{Host: host, Handler: routes})
	}
	p := newProgram(t, sites, nil)
	run := p.amble("run")
	must.Do(t, run.Start())
	testkit.Until(t, "both pages", func() bool { return p.pagesInFlight() == len(sites) })
	must.Do(t, run.Process.Kill())
	_ = run.Wait()
	close(leave)
	p.exits(0, "run")
	out, _ := p.exits(0, "audit", "--json")
	var report struct {
		NoEnd    int `json:"no_end_known"`
		Unproven int `json:"unproven"`
	}
	must.Do(t, json.Unmarshal([]byte(out), &report))
	assert.True(t, report.NoEnd == len(sites) && report.Unproven == 0, "%+v: %s", report, out)
}

// pagesInFlight is how many pages are in the start ledger.
func (p *program) pagesInFlight() int {
	text, _ := os.ReadFile(p.path("data", starts.FileName)) // not there yet: none
	return strings.Count(string(text), " page,")
}
