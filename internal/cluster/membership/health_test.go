package membership

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestBehind: a copy that is behind once is nothing, and one that stays behind is reported.
func TestBehind(t *testing.T) {
	var text bytes.Buffer
	n := &shell{log: slog.New(slog.NewTextHandler(&text, nil))}
	good := Replica{Server: "one", Leader: true, Current: true}
	var before map[string]bool
	for i, late := range [][]Replica{{{Server: "two"}}, nil, {{Server: "two", Lag: 7}}} {
		before = n.reportBehind(append(late, good), before)
		assert.True(t, text.Len() <= 0, "step %d: %s", i, &text)
	}
	n.reportBehind([]Replica{good, {Server: "two", Current: true, Offline: true, Lag: 9}}, before)
	s := text.String()
	assert.True(t, strings.Contains(s, "server=two") && strings.Contains(s, "behind=9") &&
		strings.Count(s, "\n") == 1, "%s", s)
}
