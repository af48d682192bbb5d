package shards

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestMetrics: a node that crawls reports its trust and its shards, and each series of an alert of
// docs/CLUSTER.md exists.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20*time.Millisecond, longTTL)
	p := w.start("first", t.TempDir())
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(p.node.Metrics())
	var there map[string]float64
	w.eventually("the node owns all shards", func() error {
		there = gather(t, registry)
		if there[`amble_cluster_shards{owner="own"}`] != shards || len(p.node.member.LastReplicas()) == 0 {
			return errNotYet
		}
		return nil
	})
	for name, least := range map[string]float64{"amble_cluster_connected": 1, "amble_cluster_trust_seconds": 1,
		"amble_cluster_heartbeat_age_seconds": 0, `amble_cluster_nodes{state="live"}`: 1} {
		if value, ok := there[name]; !ok || value < least {
			t.Errorf("%s is %v (%v)", name, value, ok)
		}
	}
	page, err := os.ReadFile("../../docs/CLUSTER.md")
	if err != nil {
		t.Fatal(err)
	}
	_, alerts, _ := strings.Cut(string(page), "\n## Alerts\n")
	alerts, _, _ = strings.Cut(alerts, "\n## ")
	found := regexp.MustCompile(`amble_cluster_[a-z_]+(?:\{[^}]*\})?`).FindAllString(alerts, -1)
	for _, series := range found {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(there)), func(name string) bool {
			return name == series || strings.HasPrefix(name, series+"{")
		}) {
			t.Errorf("there is no %s", series)
		}
	}
	if len(found) < 6 {
		t.Errorf("only %d series were found", len(found))
	}
	p.leave()
}

// gather returns the series of a registry.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += "{" + label.GetName() + `="` + label.GetValue() + `"}`
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}
