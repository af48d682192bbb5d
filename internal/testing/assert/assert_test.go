package assert

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// recorder is a test that records what is reported.
type recorder struct{ text string }

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }

// TestReports: each assertion reports what it is about with what it found, and nothing where all is well.
func TestReports(t *testing.T) {
	wrapped := fmt.Errorf("read: %w", io.EOF)
	for name, test := range map[string]struct {
		good, bad func(TB)
		want      string
	}{
		"Equal": {func(t TB) { Equal(t, 1, 1) }, func(t TB) { Equal(t, "a", "b", "of", 7) },
			`of 7: got "a", want "b"`},
		"Not": {func(t TB) { Not(t, 1, 2) }, func(t TB) { Not(t, 2, 2, "page") }, `page: got 2`},
		"Slice": {func(t TB) { Slice(t, nil, []int{}) }, func(t TB) { Slice(t, []int{1}, []int{2}) },
			"got [1]\nwant [2]"},
		"Deep": {func(t TB) { Deep(t, []int{1}, []int{1}) }, func(t TB) { Deep(t, []int{}, []int(nil)) },
			"got []\nwant []"},
		"AtMost":  {func(t TB) { AtMost(t, 2, 2) }, func(t TB) { AtMost(t, 3, 2) }, "got 3, want 2 at most"},
		"AtLeast": {func(t TB) { AtLeast(t, 2, 2) }, func(t TB) { AtLeast(t, 1, 2) }, "got 1, want 2 at least"},
		"Contains": {func(t TB) { Contains(t, "abc", "b") }, func(t TB) { Contains(t, "abc", "d") },
			"\"d\" is not in\nabc"},
		"True": {func(t TB) { True(t, true, "") }, func(t TB) { True(t, false, "%d hosts", 2) }, "2 hosts"},
		"Is": {func(t TB) { Is(t, wrapped, io.EOF) }, func(t TB) { Is(t, nil, io.EOF) },
			"the error is <nil>, want EOF"},
		"NoError": {func(t TB) { NoError(t, nil) }, func(t TB) { NoError(t, io.EOF, "read") }, "read: EOF"},
		"Returns": {func(t TB) { Returns(1, nil)(t, 1) }, func(t TB) { Returns(1, nil)(t, 2) },
			"got 1 and the error <nil>, want 2"},
		"Returns with an error": {func(TB) {}, func(t TB) { Returns(1, io.EOF)(t, 1) },
			"got 1 and the error EOF, want 1"},
		"Fails": {func(t TB) { Fails(1, wrapped)(t, io.EOF) }, func(t TB) { Fails(1, errors.New("x"))(t, io.EOF) },
			"got 1 and the error x, want the error EOF"},
		"Fails somehow": {func(t TB) { Fails(1, io.EOF)(t, nil) }, func(t TB) { Fails(1, nil)(t, nil) },
			"got 1 and the error <nil>, want the error <nil>"},
	} {
		var good, bad recorder
		test.good(&good)
		test.bad(&bad)
		if good.text != "" || strings.TrimSpace(bad.text) != test.want {
			t.Errorf("%s reports %q where all is well, and otherwise %q, want %q", name, good.text, bad.text, test.want)
		}
	}
}
