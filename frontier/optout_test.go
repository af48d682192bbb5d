package frontier

import (
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage"
)

// TestOptOutOfOrigin: an opt-out that covers the robots.txt of one origin of a host comes while the
// host is active. Nothing of that origin is fetched any more, robots.txt included, and its URLs are
// excluded; the other origin is fetched as before. After a restart it is the same. Nor is anything
// fetched of an origin that is found later.
func TestOptOutOfOrigin(t *testing.T) {
	m := newMemory()
	w := newWorld(t, testOptions(), m)
	excluded := map[uint8]int{}
	w.committed = func(b *storage.Batch) {
		for _, d := range b.Done {
			if d.Outcome.State == storage.Excluded && d.Outcome.Reason == storage.ReasonOptOut {
				excluded[d.Origin]++
			}
		}
	}
	w.open()
	var urls []string
	for i := range 40 {
		page := string(rune('a'+i/26)) + string(rune('a'+i%26))
		urls = append(urls, "http://a.test/"+page, "http://a.test:81/"+page)
	}
	w.add(urls...)
	w.run(10 * time.Second)
	var list []optout.Entry
	for _, value := range []string{"http://a.test:81/robots", "http://b.test:81/robots"} {
		e := must.Get(optout.New(optout.Entry{Scope: optout.ScopePrefix, Value: value, At: epoch}))(t)
		list = append(list, e)
	}
	since := w.now
	w.scope = w.scope.WithOptOuts(optout.NewList(list...))
	w.f.SetScope(w.scope)
	w.add("http://b.test:81/late", "http://b.test/late")
	w.run(30 * time.Second)
	w.open()
	w.run(2 * time.Minute)
	covered, other := 0, 0
	for _, r := range w.log {
		switch isCovered := strings.Contains(r.url, ".test:81/"); {
		case isCovered && !r.start.Before(since):
			t.Errorf("after the opt-out: %v", r)
		case isCovered && r.kind == Page:
			covered++
		case r.kind == Page:
			other++
		}
	}
	assert.True(t, covered != 0 && other == 41, "%d pages of the origin were fetched before, and %d of the other one",
		covered, other)
	assert.Equal(t, excluded[0]+excluded[1], 41-covered, "URLs were excluded")
}
