package storage

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// anyTime draws an instant, also those that a row cannot hold.
func anyTime() *rapid.Generator[time.Time] {
	return rapid.OneOf(
		rapid.SampledFrom([]time.Time{{}, time.Unix(0, 0), time.Unix(-1, 1), time.Unix(1, 0),
			time.Unix(math.MaxUint32, 1), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}),
		rapid.Map(rapid.Int64Range(0, 1<<33), func(n int64) time.Time { return time.Unix(n, n%1e9) }),
	)
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]int{0, 1, 255, 256, 70_000}),
			func(n int) string { return strings.Repeat("x", n) }),
		rapid.SampledFrom([]string{"Thu, 01 Jan 1970 00:00:00 GMT", "Sat, 21 Nov 2026 10:30:00 GMT", "\x00",
			"\xff\xfe"}),
		rapid.String(),
	)
}

// TestAnyOutcome: the row of any outcome can be read and holds what the fields can hold.
func TestAnyOutcome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Outcome{
			State:  State(rapid.IntRange(0, int(numStates)-1).Draw(t, "state")),
			Reason: Reason(rapid.Byte().Draw(t, "reason")),
			Status: rapid.Uint16().Draw(t, "status"), Attempts: rapid.Byte().Draw(t, "attempts"),
			At: anyTime().Draw(t, "at"), Due: anyTime().Draw(t, "due"),
			Bytes: rapid.Uint64().Draw(t, "bytes"), Digest: rapid.Uint64().Draw(t, "digest"),
			Line: rapid.Uint32().Draw(t, "line"),
			ETag: anyText().Draw(t, "etag"), Modified: anyText().Draw(t, "modified"),
			Simhash: rapid.Uint64().Draw(t, "simhash"), Note: anyText().Draw(t, "note"),
			Usage: anyText().Draw(t, "usage"), Stamp: rapid.Uint32().Draw(t, "stamp"),
		}
		o.History[rapid.IntRange(0, 7).Draw(t, "place")] = rapid.Byte().Draw(t, "history")
		got, rest, ok := DecodeOutcome(append(AppendOutcome(nil, &o), "rest"...))
		must.True(t, ok && string(rest) == "rest", "%+v cannot be read, %q is left", o, rest)
		want := o
		want.At, want.Due = FromSeconds(Seconds(o.At)), FromSeconds(secondsUp(o.Due))
		if len(o.ETag) > 255 {
			want.ETag = ""
		}
		if len(o.Note) > 255 {
			want.Note = ""
		}
		if len(o.Usage) > 255 {
			want.Usage = ""
		}
		if len(o.Modified) > 255 {
			want.Modified = ""
		}
		must.True(t, reflect.DeepEqual(got, want), "read %+v, want %+v", got, want)
	})
}

// TestAnyEntry: the same for a URL.
func TestAnyEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{
			Origin:     uint8(rapid.IntRange(0, maxOrigins-1).Draw(t, "origin")),
			RequestURI: "/" + anyText().Draw(t, "uri"), Depth: rapid.Uint16().Draw(t, "depth"),
			Redirects: rapid.ByteMax(127).Draw(t, "redirects"), Seed: rapid.Bool().Draw(t, "seed"),
			Sitemap:   rapid.Bool().Draw(t, "sitemap"),
			Frequency: Frequency(rapid.IntRange(0, 7).Draw(t, "frequency")), Priority: rapid.Int8().Draw(t, "priority"),
			ViaHost: HostID(rapid.Uint32().Draw(t, "via")), FirstSeen: FromSeconds(rapid.Uint32().Draw(t, "seen")),
		}
		if rapid.Bool().Draw(t, "session") {
			e.Stripped = "/" + anyText().Draw(t, "stripped")
		}
		if rapid.Bool().Draw(t, "from") {
			e.From = SeedRef{ID: seedIDOf(e.RequestURI), Outside: rapid.Byte().Draw(t, "outside")}
		}
		host := HostID(rapid.SampledFrom([]uint32{1, uint32(e.ViaHost), math.MaxUint32}).Draw(t, "host"))
		if e.ViaHost != NoHost {
			e.ViaOrdinal = rapid.Uint32().Draw(t, "ordinal")
		}
		b := append(appendEntry(nil, host, &e), "rest"...)
		got, rest, ok := decodeEntry(b, host, 0)
		d := wire.NewDecoder(b)
		skipEntry(&d)
		must.True(t, ok && d.OK() && string(rest) == "rest" && string(d.Rest()) == "rest" && got == e,
			"read %+v, want %+v; %q and %q are left", got, e, rest, d.Rest())
	})
}
