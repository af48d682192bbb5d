package load

import (
	"log/slog"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestStoredRulesThatPanic: what panics where no worker is costs the file.
func TestStoredRulesThatPanic(t *testing.T) {
	r := &Rules{Log: slog.New(slog.DiscardHandler)}
	rules, err := r.Compile(nil)
	assert.True(t, rules == nil && err != nil, "rules %v, error %v", rules, err)
}
