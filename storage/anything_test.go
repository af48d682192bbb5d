package storage

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/wire"
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
			Usage: anyText().Draw(t, "usage"),
		}
		o.History[rapid.IntRange(0, 7).Draw(t, "place")] = rapid.Byte().Draw(t, "history")
		got, rest, ok := decodeOutcome(append(appendOutcome(nil, &o), "rest"...))
		if !ok || string(rest) != "rest" {
			t.Fatalf("%+v cannot be read, %q is left", o, rest)
		}
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
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("read %+v, want %+v", got, want)
		}
	})
}

// TestAnyEntry: the same for a URL.
func TestAnyEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{
			Origin:     uint8(rapid.IntRange(0, maxOrigins-1).Draw(t, "origin")),
			RequestURI: "/" + anyText().Draw(t, "uri"), Depth: rapid.Uint16().Draw(t, "depth"),
			Redirects: rapid.Byte().Draw(t, "redirects"), Seed: rapid.Bool().Draw(t, "seed"),
			Sitemap:   rapid.Bool().Draw(t, "sitemap"),
			Frequency: Frequency(rapid.IntRange(0, 7).Draw(t, "frequency")), Priority: rapid.Int8().Draw(t, "priority"),
			ViaHost: HostID(rapid.Uint32().Draw(t, "via")), FirstSeen: FromSeconds(rapid.Uint32().Draw(t, "seen")),
		}
		if rapid.Bool().Draw(t, "session") {
			e.Stripped = "/" + anyText().Draw(t, "stripped")
		}
		host := HostID(rapid.SampledFrom([]uint32{1, uint32(e.ViaHost), math.MaxUint32}).Draw(t, "host"))
		if e.ViaHost != NoHost {
			e.ViaOrdinal = rapid.Uint32().Draw(t, "ordinal")
		}
		b := append(appendEntry(nil, host, &e), "rest"...)
		got, rest, ok := decodeEntry(b, host, 0)
		d := wire.NewDecoder(b)
		skipEntry(&d)
		if !ok || !d.OK() || string(rest) != "rest" || string(d.Rest()) != "rest" || got != e {
			t.Fatalf("read %+v, want %+v; %q and %q are left", got, e, rest, d.Rest())
		}
	})
}

// TestAnyStart: the start ledger can be read to its end with any delays and waits.
func TestAnyStart(t *testing.T) {
	dir := t.TempDir()
	durations := rapid.OneOf(
		rapid.SampledFrom([]time.Duration{0, 1, -1, time.Millisecond, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64,
			1 << 62}),
		rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		l, err := OpenLedger(dir, "boot", 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		starts, waits := make(map[string]time.Duration), make(map[string]time.Duration)
		for i := range rapid.IntRange(1, 20).Draw(t, "lines") {
			host, d, at := fmt.Sprintf("h%d.test", i), durations.Draw(t, "duration"), anyTime().Draw(t, "at")
			if rapid.Bool().Draw(t, "wait") && d > 0 {
				waits[host] = d
				err = l.AppendWait(Wait{Host: host, At: at, Wait: d})
			} else {
				starts[host] = max(d, -1)
				_, err = l.Append(Start{Host: host, Address: "fe80::1%eth0", At: at, Delay: d,
					Note: "page,0,,http://" + host + "/"})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		uncommitted, err := ReadUncommitted(dir, 0, "boot", nil)
		if err != nil || uncommitted.Everyone || uncommitted.End != l.Offset() ||
			len(uncommitted.Hosts) != len(starts) ||
			len(uncommitted.Waits) != len(waits) {
			t.Fatalf("%+v, want %d starts and %d waits (%v)", uncommitted, len(starts), len(waits), err)
		}
		for host, d := range starts {
			if got := uncommitted.Hosts[host]; d >= 0 && got < d || d < 0 && got >= 0 {
				t.Fatalf("a delay of %v became %v", d, got)
			}
		}
		for host, d := range waits {
			if got := uncommitted.Waits[host].Wait; got < d {
				t.Fatalf("a wait of %v became %v", d, got)
			}
		}
	})
}
