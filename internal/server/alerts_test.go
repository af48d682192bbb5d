package server

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/requestlog"
)

// series is a selector of an alert: a metric and what its labels are to be.
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

// Every series that an alert of docs/OPERATING.md asks for is there, with the labels and values that it asks for.
func TestAlertsAskForWhatThereIs(t *testing.T) {
	m := NewMetrics("")
	s := start(t, Options{Metrics: m, Now: time.Now})
	m.Requested(requestlog.Request{Failure: fetch.KindConnectTimeout})
	m.Committed(time.Millisecond, 1)
	_, body := request(t, s, "GET", "/metrics", nil)
	there := metricLines(body)

	page, err := os.ReadFile("../../docs/OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, alerts, _ := strings.Cut(string(page), "\n## Alerts\n")
	alerts, _, _ = strings.Cut(alerts, "\n## ")
	found := series.FindAllStringSubmatch(alerts, -1)
	if len(found) < 9 {
		t.Fatalf("only %d series are asked for", len(found))
	}
	for _, ask := range found {
		want := labels(ask[2])
		fits := func(have map[string]string) bool {
			for name, value := range want {
				if have[name] != value {
					return false
				}
			}
			return true
		}
		if !slices.ContainsFunc(there[ask[1]], fits) {
			t.Errorf("%s%s is not at /metrics", ask[1], ask[2])
		}
	}
	for _, by := range regexp.MustCompile("`(amble_[a-z_]+)` by `([a-z_]+)`").FindAllStringSubmatch(alerts, -1) {
		if lines := there[by[1]]; len(lines) == 0 || !slices.Contains(slices.Collect(maps.Keys(lines[0])), by[2]) {
			t.Errorf("%s has no label %s", by[1], by[2])
		}
	}
}
