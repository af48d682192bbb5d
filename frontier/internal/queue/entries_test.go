package queue

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/storage"
)

// TestEntryKeepsFields holds that nothing of a URL is lost in memory, whatever fields storage.Entry
// has, except the text that only the store compares.
func TestEntryKeepsFields(t *testing.T) {
	e := storage.Entry{
		Ordinal: 1 << 31, Origin: 3, RequestURI: "/a?b&sid=1", Stripped: "/a?b", Depth: 1 << 15, Redirects: 200,
		Seed: true, From: storage.SeedRef{ID: storage.SeedID{1, 2}, Outside: 3},
		Priority: -100, Sitemap: true, Frequency: 7, Room: 200,
		ViaHost: 1 << 30, ViaOrdinal: 7, FirstSeen: time.Unix(1<<32-1, 0),
	}
	fields := reflect.ValueOf(e)
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			t.Errorf("the test says nothing about %s", fields.Type().Field(i).Name)
		}
	}
	for _, want := range []storage.Entry{e, {RequestURI: "/"}} {
		var h entries
		h.insert(storage.Head{Entry: want})
		want.Stripped = ""
		assert.Equal(t, h.take(want.Origin), want, "came back as")
	}
}

// TestEntriesKeepTexts takes URLs from the front and puts them back anywhere; each keeps its text.
func TestEntriesKeepTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uri := func(ordinal uint32) string {
			return "/" + strings.Repeat("x", int(ordinal*7%5)) + strconv.Itoa(int(ordinal))
		}
		var h entries
		var want Ordinals
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if len(want) > 0 && rapid.Bool().Draw(t, "take") {
				if e := h.take(0); e.Ordinal != want[0] || e.RequestURI != uri(want[0]) {
					t.Fatalf("took %d %s, want %d", e.Ordinal, e.RequestURI, want[0])
				}
				want = want[1:]
				continue
			}
			var more []storage.Head
			n, at := rapid.IntRange(0, 3).Draw(t, "more"), rapid.IntRange(0, len(want)).Draw(t, "at")
			first := uint32(0) // ordinals are those of the neighbours and of what lies between
			if at > 0 {
				first = want[at-1] + 1
			}
			end := first + 1<<10
			if at < len(want) {
				end = want[at]
			}
			for o := first; o < end && len(more) < n; o += 1 + (end-first)/4 {
				more = append(more, storage.Head{Entry: storage.Entry{Ordinal: o, RequestURI: uri(o)}})
				want.Add(o)
			}
			h.insert(more...)
		}
		for i, o := range want {
			if e := h.at(i, 0); e.Ordinal != o || e.RequestURI != uri(o) {
				t.Fatalf("%d is %d %s, want %d", i, e.Ordinal, e.RequestURI, o)
			}
		}
	})
}
