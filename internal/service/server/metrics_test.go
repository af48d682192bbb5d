package server

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

func TestMetrics(t *testing.T) {
	m := NewMetrics("1.2.3")
	s := start(t, Options{Metrics: m, Now: time.Now})
	begun := time.Unix(1_790_000_000, 0)
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	for i, host := range []string{"a.test", "b.test", "c.test"} {
		u := must.Get(weburl.Parse("http://" + host + "/secret"))(t)
		m.Requested(requestlog.Request{
			URL: u, Status: 200 + 102*i, BodyBytes: 1000,
			Start: at(0), Connected: at(3), FirstByte: at(20), End: at(100),
		})
	}
	m.Requested(requestlog.Request{
		Kind: requestlog.Robots, Failure: fetch.KindConnectTimeout, Start: at(0), End: at(5000),
		Late: 40 * time.Millisecond,
	})
	m.Committed(30*time.Millisecond, 17)

	response, body := request(t, s, "GET", "/metrics", nil)
	must.True(t, response.StatusCode == 200 && strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain"),
		"%d, %s", response.StatusCode, response.Header.Get("Content-Type"))
	for _, want := range []string{
		`amble_requests_total{class="2xx",kind="page"} 1`, `amble_requests_total{class="3xx",kind="page"} 1`,
		`amble_requests_total{class="4xx",kind="page"} 1`,
		`amble_requests_total{class="none",kind="robots"} 1`, `amble_request_failures_total{error="connect_timeout"} 1`,
		`amble_request_phase_seconds_bucket{phase="connect",le="0.005"} 3`,
		`amble_request_phase_seconds_bucket{phase="first_byte",le="0.025"} 3`,
		`amble_request_phase_seconds_bucket{phase="body",le="0.05"} 0`,
		`amble_request_phase_seconds_count{phase="body"} 3`,
		`amble_dispatch_lateness_seconds_bucket{le="0.025"} 3`, `amble_dispatch_lateness_seconds_count 4`,
		`amble_commit_seconds_count 1`, `amble_committed_items_total 17`, `amble_response_bytes_count 3`,
		`amble_requisites{state="fetched"} 2`,
		`amble_urls{state="queued"} 4`, `amble_hosts 7`, `amble_state{state="running"} 1`,
		`amble_state{state="stalled"} 0`,
		`amble_delay_violations_total 0`, `amble_crashes_total 2`, `amble_max_rate 2.5`,
		`amble_max_rate_wait_seconds_total 7.5`, `amble_recrawls_total 9`, `amble_unchanged_recrawls_total 8`,
		`amble_unchanged_bytes_total 4096`,
		`amble_bandwidth_limit_bytes 2048`, `amble_host_bandwidth_limit_bytes 1024`,
		`amble_bandwidth_wait_seconds_total 12`,
		`amble_connection_received_bytes_total 345`, `amble_build_info{version="1.2.3"} 1`, `go_goroutines `,
		`process_resident_memory_bytes `,
	} {
		assert.Contains(t, body, "\n"+want, want, "is missing")
	}
	assert.True(t, !strings.Contains(body, ".test"), "a label names a host")
	assert.AtMost(t, len(regexp.MustCompile(`(?m)^amble_`).FindAllString(body, -1)), 200, "series")
}

func TestMetricsAndProfilesAreGuarded(t *testing.T) {
	s := start(t, Options{Metrics: NewMetrics(""), Token: "full", ReadToken: "look", Pprof: true, Now: time.Now})
	for _, tt := range []struct {
		path, token string
		status      int
	}{
		{"/metrics", "", 401}, {"/metrics", "look", 200}, {"/metrics", "full", 200},
		{"/debug/pprof/", "", 401}, {"/debug/pprof/", "look", 403}, {"/debug/pprof/", "full", 200},
		{"/debug/pprof/heap", "look", 403},
		{"/debug/pprof/heap", "full", 200}, {"/debug/pprof/cmdline", "look", 403},
		{"/debug/pprof/trace?seconds=0.01", "full", 200},
		{"//debug/pprof/heap", "look", 307}, {"/x/../debug/pprof/heap", "look", 307},
		{"/debug/pprof/../pprof/heap", "look", 307},
	} {
		header := map[string]string{}
		if tt.token != "" {
			header["Authorization"] = "Bearer " + tt.token
		}
		if response, _ := request(t, s, "GET", tt.path, header); response.StatusCode != tt.status {
			t.Errorf("%s with %q: %d, want %d", tt.path, tt.token, response.StatusCode, tt.status)
		}
	}
	without := start(t, Options{})
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap"} {
		response, _ := request(t, without, "GET", path, nil)
		assert.True(t, response.StatusCode == 404, "%s without the option: %d", path, response.StatusCode)
	}
}

// series is a selector of an alert: a metric and the values of its labels.
var series = regexp.MustCompile(`\b((?:amble|process|go)_[a-z_]+)(\{[^}]*\})?`)

// label is one label of a selector, or of a line of /metrics.
var label = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// metricLines are the lines of /metrics by the names of the metrics, each as its labels.
func metricLines(body string) map[string][]map[string]string {
	lines := make(map[string][]map[string]string)
	for line := range strings.Lines(body) {
		if m := series.FindStringSubmatch(line); m != nil && !strings.HasPrefix(line, "#") {
			lines[m[1]] = append(lines[m[1]], labels(m[2]))
		}
	}
	return lines
}

func labels(text string) map[string]string {
	all := make(map[string]string)
	for _, l := range label.FindAllStringSubmatch(text, -1) {
		all[l[1]] = l[2]
	}
	return all
}

// TestAlertSeriesExist: every series of rules.yaml and grafana.json in docs/service exists, with its labels and
// values, and docs/OPERATING.md says what to do about each alert.
func TestAlertSeriesExist(t *testing.T) {
	m := NewMetrics("")
	s := start(t, Options{Metrics: m, Now: time.Now})
	m.Requested(requestlog.Request{Failure: fetch.KindConnectTimeout})
	m.Committed(time.Millisecond, 1)
	_, body := request(t, s, "GET", "/metrics", nil)
	there := metricLines(body)
	read := func(file string) string {
		text := must.Get(os.ReadFile("../../../docs/" + file))(t)
		return string(text)
	}
	rules, page := read("service/rules.yaml"), read("OPERATING.md")
	found := series.FindAllStringSubmatch(rules+strings.ReplaceAll(read("service/grafana.json"), `\"`, `"`), -1)
	must.True(t, len(found) >= 20, "only %d series were found", len(found))
	for _, wanted := range found {
		if wanted[1] == "amble_alarm" { // of a module
			continue
		}
		want := labels(wanted[2])
		fits := func(have map[string]string) bool {
			for name, value := range want {
				if have[name] != value {
					return false
				}
			}
			return true
		}
		if !slices.ContainsFunc(there[wanted[1]], fits) {
			t.Errorf("%s%s is not at /metrics", wanted[1], wanted[2])
		}
	}
	for _, by := range regexp.MustCompile("`(amble_[a-z_]+)` by `([a-z_]+)`").FindAllStringSubmatch(page, -1) {
		if lines := there[by[1]]; len(lines) == 0 || !slices.Contains(slices.Collect(maps.Keys(lines[0])), by[2]) {
			t.Errorf("%s has no label %s", by[1], by[2])
		}
	}
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		assert.True(t, strings.Contains(page, "\n| `"+alert[1]+"` |"),
			"docs/OPERATING.md does not say what to do about %s", alert[1])
	}
}

// TestMetricsCountAll: every request is counted, however many come between two readings.
func TestMetricsCountAll(t *testing.T) {
	const requests = 3*requestsTogether + 1
	m := NewMetrics("1.2.3")
	for range requests {
		m.Requested(requestlog.Request{Status: 200})
	}
	m.countWaiting()
	for { // those that are counted together are so in their own goroutine
		families := must.Get(m.registry.Gather())(t)
		counted := 0.0
		for _, f := range families {
			if f.GetName() == "amble_requests_total" {
				counted = f.GetMetric()[0].GetCounter().GetValue()
			}
		}
		if counted > requests {
			t.Fatalf("%v requests were counted, want %d", counted, requests)
		} else if counted == requests {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
