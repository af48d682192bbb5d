package shards

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestHeavyRequeue: what a node has fetched can be put back after it has gone, by the epochs of its shards. Each of
// these pages is fetched once more, and no other one.
func TestHeavyRequeue(t *testing.T) {
	t.Parallel()
	want := ringPages()
	w := newWorld(t, 10*time.Millisecond, shortTTL)
	w.api = true
	first := w.start("first", t.TempDir())
	w.requested(len(want) / 3)
	first.leave()
	time.Sleep(1100 * time.Millisecond) // the times of outcomes are in seconds
	second := w.start("second", t.TempDir())
	w.crawled(want)
	second.commits(want)

	_, js := w.connect()
	owned, err := membership.ReadOwned(t.Context(), js, names, "first", w.started)
	must.True(t, err == nil && len(owned) == shards, "the first node owned %v, %v", owned, err)
	if none, err := membership.ReadOwned(t.Context(), js, names, "third", w.started); err != nil || len(none) > 0 {
		t.Errorf("a stranger owned %v, %v", none, err)
	}
	if later, err := membership.ReadOwned(t.Context(), js, names, "first", time.Now()); err != nil || len(later) > 0 {
		t.Errorf("the first node owned %v after it left, %v", later, err)
	}
	var q server.Retry
	for shard, spans := range owned {
		n := int(shard)
		for _, s := range spans {
			q.Fetched = append(q.Fetched, server.FetchedIn{From: s.From, To: s.To, Shard: &n})
		}
	}
	body := must.Get(json.Marshal(q))(t)
	lost := make(map[string]int)
	for _, r := range w.by("first").Pages() {
		lost[r.Host+r.Path]++
	}
	for range 2 { // the second time there is nothing left that the first node has fetched
		status, text, _ := second.call("POST", "/api/v1/urls/retry", string(body))
		must.True(t, status == 200 && strings.Contains(text, "\"done\":true"), "%d %s", status, text)
		w.eventually("the pages are fetched again", func() error {
			again := make(map[string]int)
			for _, r := range w.by("second").Pages() {
				again[r.Host+r.Path]++
			}
			for page := range lost {
				if again[page] == 0 {
					return errNotYet
				}
			}
			return second.hasCommitted(want)
		})
	}
	second.leave()
	w.check(want)
	bySecond := w.by("second").Pages()
	assert.Equal(t, len(bySecond)-w.checkLost(bySecond), len(want), "the second node fetched pages")
}
