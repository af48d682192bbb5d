package frontier

import (
	"reflect"
	"testing"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// TestHead holds that nothing of a URL is lost in memory, whatever fields an
// entry has, but for what only the store asks about.
func TestHead(t *testing.T) {
	e := storage.Entry{
		Ordinal: 1 << 31, Origin: 3, RequestURI: "/a?b&sid=1", Stripped: "/a?b", Depth: 1 << 15, Redirects: 200, Seed: true, Priority: -100, Sitemap: true, Frequency: 7,
		ViaHost: 1 << 30, ViaOrdinal: 7, FirstSeen: time.Unix(1<<32-1, 0),
	}
	fields := reflect.ValueOf(e)
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			t.Errorf("the test says nothing about %s", fields.Type().Field(i).Name)
		}
	}
	for _, want := range []storage.Entry{e, {RequestURI: "/"}} {
		h := newHead(&want)
		want.Stripped = ""
		if got := h.entry(want.Origin); got != want {
			t.Errorf("%+v came back as %+v", want, got)
		}
	}
}
