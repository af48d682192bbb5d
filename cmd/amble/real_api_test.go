//go:build real

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// schemathesis is a tester of APIs by their description that nobody here wrote.
const schemathesis = "schemathesis==4.32.5"

// schemathesisConfig says which statuses are right beyond what the tool takes for it. Some
// parameters have a language of their own, which a description cannot hold: what is no URL, no
// regular expression, no instant to come, no setting, no place in a list, no host, no lease is 422; a
// lease of somebody else is 403, one that has ended 409. And what does not come whole, or is too long
// for the header, is 408, 413 or 431.
const schemathesisConfig = `
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "408", "409", "413", "415", "422", "428", "429", "431", "5xx"]

[[operations]]
include-operation-id = ["urls-one", "robots-text", "robots-check", "config-change", "hosts-pause", "hosts-list", "urls-retry",
    "urls-delete", "optouts-add", "optouts-remove", "check-urls"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "404", "422", "431"]

[[operations]]
include-operation-id = ["seeds-add", "seeds-remove"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "404", "422", "431"]

[[operations]]
include-operation-id = ["leases-report", "leases-extend", "leases-extend-all"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "403", "404", "409", "422", "431"]
`

// TestRealDescription holds the API of a running crawl against its description, with requests that
// schemathesis makes up. Left out are what ends the crawl, the stream that has no end, the long poll
// for leases, which waits longer than the tool does, and the list of reports, whose type the tool
// cannot write. Lines of JSON are held against their schema by the tests of internal/service/server.
func TestRealDescription(t *testing.T) {
	forgetSettings(t)
	dir := t.TempDir()
	bin := python(t, schemathesis)
	binary := build(t)
	page := testweb.Page("page", "/1", "/2", "/private", "/missing")
	web := testweb.Serve(t, testweb.Config{Sites: []testweb.Site{
		{Host: "a.test", Handler: testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /private\n"),
			"/": page, "/1": page, "/2": page}},
		{Host: "b.test", Handler: testweb.Routes{"/robots.txt": testweb.Robots("User-agent: *\nCrawl-delay: 600\n"),
			"/": page}},
	}})
	settings := fmt.Sprintf(`
data_dir: ./data
crawl:
  exit_when_done: false
  seeds: [%q, %q]
politeness: {delay: 10ms, ip_rate: 0}
fetch:
  allow_private: true
  resolver: %s
server:
  listen: 127.0.0.1:0
  token: secret
`, web.URL("a.test", "/"), web.URL("b.test", "/"), web.ResolverAddr())
	for name, text := range map[string]string{"config.yaml": settings, "schemathesis.toml": schemathesisConfig} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	crawl := start(t, binary, "run", "-c", "config.yaml")
	address := addressOf(t, dir, crawl)
	run := func(more ...string) {
		t.Helper()
		arguments := append([]string{
			"--config-file", "schemathesis.toml", "run", "http://" + address + "/api/v1/openapi.json", "-H",
			"Authorization: Bearer secret",
			"--rate-limit", "180/s", "--generation-database", "none", "--seed", "1", "--no-color",
		}, more...)
		output, err := command(t, 30*time.Minute, filepath.Join(bin, "schemathesis"), arguments...)
		if err != nil {
			t.Errorf("%v\n%s", err, tail(output))
		}
		if i := strings.LastIndex(output, "API Operations:"); i >= 0 {
			t.Log(output[i:])
		}
	}
	run("-n", "100", "--exclude-checks", "ignored_auth", "--exclude-operation-id", "crawl-stop",
		"--exclude-operation-id", "crawl-drain", "--exclude-operation-id", "crawl-events", "--exclude-operation-id",
		"leases-take",
		"--exclude-operation-id", "leases-report-all")
	// too many wrong tokens close the door for right ones
	run("-n", "3", "--checks", "ignored_auth", "--include-operation-id", "crawl-status")
	output, err := command(t, time.Minute, binary, "status", "-c", "config.yaml", "--json")
	var status struct{ State string }
	if err == nil {
		err = json.Unmarshal([]byte(output), &status)
	}
	if err != nil || !crawl.running() {
		t.Errorf("the crawl after all of it: %q, %v\n%s", status.State, err, tail(crawl.output.String()))
	}
}

// addressOf waits until a crawl serves its API.
func addressOf(t *testing.T, dir string, crawl *process) string {
	t.Helper()
	for range 600 {
		if text, err := os.ReadFile(filepath.Join(dir, "data", "server.addr")); err == nil {
			address, _, _ := strings.Cut(string(text), "\n")
			return address
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no API\n%s", crawl.output.String())
	return ""
}
