package recovery

import (
	"testing"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage/starts"
)

// TestNote: what is written into the start ledger of a lease comes back; lines of others are
// left alone.
func TestNote(t *testing.T) {
	for _, note := range []string{"", "page", "page,x,,http://a.test/", "page,1,,nothing", "page,1,,"} {
		r, ok := parseNote(starts.Start{Host: "a.test", Address: "127.0.0.1", Note: note})
		assert.True(t, !ok, "%q is read as %+v", note, r)
	}
	if r, ok := parseNote(starts.Start{Host: "a.test", Note: "page,1,,http://a.test/,b"}); ok {
		t.Errorf("without an address: %+v", r)
	}
	r, ok := parseNote(starts.Start{Host: "a.test", Address: "::1", Note: "robots,0,,http://a.test/a,b"})
	assert.True(t, ok && r.Kind == requestlog.Robots && r.URL.String() == "http://a.test/a,b" && r.Policy == nil,
		"%+v, %t", r, ok)
}
