package membership

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestBehind: a copy that is behind once is nothing, and one that stays behind is reported.
func TestBehind(t *testing.T) {
	var text bytes.Buffer
	n := &shell{log: slog.New(slog.NewTextHandler(&text, nil))}
	good := Replica{Server: "one", Leader: true, Current: true}
	var before map[string]bool
	for i, late := range [][]Replica{{{Server: "two"}}, nil, {{Server: "two", Lag: 7}}} {
		if before = n.reportBehind(append(late, good), before); text.Len() > 0 {
			t.Errorf("step %d: %s", i, &text)
		}
	}
	n.reportBehind([]Replica{good, {Server: "two", Current: true, Offline: true, Lag: 9}}, before)
	if s := text.String(); !strings.Contains(s, "server=two") || !strings.Contains(s, "behind=9") ||
		strings.Count(s, "\n") != 1 {
		t.Errorf("%s", s)
	}
}
