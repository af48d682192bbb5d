package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/storage"
)

// TestWalledHosts: hosts behind a wall, and those with evidence for one, are found by that.
func TestWalledHosts(t *testing.T) {
	s := testkit.OpenStore(t)
	commit(t, s, storage.Batch{Found: found(t, s, "http://open.test/", "http://doubtful.test/", "http://walled.test/")})
	refused := func(n int) []byte {
		var state wall.State
		for i := range n {
			at := now.Add(time.Duration(i) * time.Minute)
			a := wall.Answer{Status: 403, Took: time.Second, URL: uint64(i) * 7919}
			a.Section, a.Top = wall.Sections(fmt.Sprintf("/%d/%d", i%5, i))
			a.Mark = wall.Mark{Wall: 1, Tier: wall.TierHeader}
			state.Observe(at, a)
		}
		b, _ := state.AppendBinary(nil) // its error is always nil
		return b
	}
	commit(t, s, storage.Batch{Hosts: []storage.HostUpdate{{Host: 2, Wall: refused(1)}, {Host: 3, Wall: refused(21)}}})
	v := New(s, testOptions())
	for query, want := range map[string]string{HostWalled: "walled walled", HostSuspected: "doubtful ready",
		HostReady: "open ready, doubtful ready"} {
		got, _ := listed(t, v, HostQuery{State: query, Sort: SortFound})
		assert.Equal(t, strings.Join(got, ", "), want, query)
	}
	var walls []string
	for _, state := range []string{HostWalled, ""} {
		must.Get(v.Hosts(t.Context(), HostQuery{State: state, Sort: SortFound, Limit: 9}, func(h *Host) error {
			walls = append(walls, h.WallKind+" "+h.WallMaker)
			return nil
		}))(t)
	}
	assert.Equal(t, strings.Join(walls, ", "), "challenge Cloudflare,  ,  , challenge Cloudflare", "walls in the lists")
	story, err := v.Host(t.Context(), "walled.test")
	assert.True(t, err == nil && story.Wall != nil && story.Wall.Kind == "challenge" &&
		story.Wall.Maker == "Cloudflare", "the host: %+v, %v", story, err)
}

// TestWallOf: what is shown of a wall follows its state as it is stored.
func TestWallOf(t *testing.T) {
	var state wall.State
	at := time.Unix(1_800_000_000, 0)
	shown := func() *Wall {
		t.Helper()
		b, _ := state.AppendBinary(nil) // its error is always nil
		return must.Get(wallOf(&storage.Host{Wall: b}))(t)
	}
	refuse := func(n int) {
		for i := range n {
			at = at.Add(time.Minute)
			target := fmt.Sprintf("/%d/%d", i%5, i)
			a := wall.Answer{Status: 403, Took: time.Second, URL: uint64(at.Unix()) * 7919}
			a.Section, a.Top = wall.Sections(target)
			state.Observe(at, a)
		}
	}
	w := shown()
	assert.True(t, w == nil, "without a response: %+v", w)
	refuse(1)
	if w := shown(); w == nil || !w.Suspected || w.Kind != "refusal" || w.Parked {
		t.Errorf("after one refusal: %+v", w)
	}
	refuse(20)
	if w := shown(); w == nil || w.Suspected || w.Probes == 0 || !w.Parked ||
		!strings.Contains(w.Evidence, "refused with 403") {
		t.Errorf("after 21 refusals: %+v", w)
	}
	assert.Fails(wallOf(&storage.Host{Name: "a.test", Wall: []byte("x")}))(t, nil, "a damaged state is read")
}
