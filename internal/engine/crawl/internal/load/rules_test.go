package load

import (
	"log/slog"
	"testing"
)

// TestStoredRulesThatPanic: what panics where no worker is costs the file.
func TestStoredRulesThatPanic(t *testing.T) {
	r := &Rules{Log: slog.New(slog.DiscardHandler)}
	if rules, err := r.Compile(nil); rules != nil || err == nil {
		t.Errorf("rules %v, error %v", rules, err)
	}
}
