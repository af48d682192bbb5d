package sweep

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage"
)

// TestMoved: where URLs have moved, each sweep goes on at the same URL.
func TestMoved(t *testing.T) {
	to := func(host storage.HostID, ordinal uint32) uint32 {
		if host == 7 && ordinal != unbounded {
			return ordinal - 16
		}
		return ordinal
	}
	deletion := "\x00\x00\x00\x20\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\x00\x20"
	for _, c := range []struct{ name, value, want string }{
		{"exclude", "7.40", "7.24"},
		{"exclude", "8.40", "8.40"},
		{"drop/7", "\x00\x00\x00\x20\x00\x00\x00\x40", "\x00\x00\x00\x10\x00\x00\x00\x30"},
		{"drop/8", "\x00\x00\x00\x20\x00\x00\x00\x40", "\x00\x00\x00\x20\x00\x00\x00\x40"},
		{"recheck/7/0", "\x00\x00\x00\x20\xff\xff\xff\xff", "\x00\x00\x00\x10\xff\xff\xff\xff"},
		{"wall/7/1/2/3", "\x00\x00\x00\x20", "\x00\x00\x00\x10"},
		{"delete/7", deletion, "\x00\x00\x00\x10\x00\x00\x00\x30\x00\x00\x00\x00\x00\x00\x00\x20"},
		{"delete-all/0", deletion, deletion},
		{"retry/1", `{"lifted":["scope"],"host":7,"ordinal":32}`, `{"lifted":["scope"],"host":7,"ordinal":16}`},
		{"retry/1", "damaged", "damaged"},
		{"drop/x", "\x00\x00\x00\x20", "\x00\x00\x00\x20"},
		{"optout/host a.example", "{}", "{}"},
	} {
		assert.Equal(t, string(Moved(c.name, []byte(c.value), to)), c.want, c.name, c.value, "became")
	}
}
