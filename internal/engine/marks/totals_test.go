package marks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage"
)

// TestTotals: types are counted as they are named, in bounded room, and come back.
func TestTotals(t *testing.T) {
	var sum Totals
	assert.True(t, sum.IsZero(), "nothing was passed")
	take := func(contentType string, bytes uint64) {
		p := Passed{Outside: 2, Deep: 1}
		p.Response(contentType, bytes)
		sum.Take(&p)
	}
	take("Text/HTML; charset=utf-8", 10)
	take(" text/html", 5)
	take("", 1)
	take("=cmd|' /C calc'!A0\r\n", 1)
	take(strings.Repeat("x", maxType+1), 1)
	for i := range 200 {
		take(fmt.Sprintf("x/%d", i), 1)
	}
	sum.Take(&Passed{Outside: 1})
	back, err := DecodeTotals(sum.Encode())
	assert.True(t, err == nil && back.Outside == 2*205+1 && back.Deep == 205 && len(back.Types) <= maxTypes, "%v: %+v",
		err, back)
	var all Amount
	for _, n := range back.Types {
		all.Responses, all.Bytes = all.Responses+n.Responses, all.Bytes+n.Bytes
	}
	assert.True(t, back.Types["text/html"] == (Amount{2, 15}) && back.Types["none"] == (Amount{1, 1}) &&
		all == (Amount{205, 218}), "%+v", back.Types)
	twice := back
	twice.Types = nil
	twice.Add(&back)
	assert.True(t, twice.Types["text/html"] == (Amount{2, 15}) && twice.Outside == 2*back.Outside, "%+v", twice)
	if none, err := DecodeTotals(nil); !none.IsZero() || err != nil {
		t.Error(none, err)
	}
	assert.Fails(DecodeTotals([]byte("{")))(t, storage.ErrCorrupt)
}
