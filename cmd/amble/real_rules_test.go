//go:build real

package main_test

import (
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestRealRules: the own tool of Prometheus takes docs/service/rules.yaml, and finds that alerts come when they should,
// and none when a crawl ends by itself.
func TestRealRules(t *testing.T) {
	if !has("promtool") {
		aptInstall(t, []string{"prometheus"})
	}
	for _, arguments := range [][]string{
		{"check", "rules", "../../docs/service/rules.yaml"}, {"test", "rules", "../../docs/service/rules_test.yaml"},
	} {
		out, err := command(t, time.Minute, "promtool", arguments...)
		assert.True(t, err == nil, "promtool %q: %v\n%s", arguments, err, out)
	}
}
