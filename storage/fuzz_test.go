package storage

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func FuzzDecodeEntry(f *testing.F) {
	f.Add(appendEntry(nil, 1, &Entry{RequestURI: "/a", FirstSeen: someTime}))
	f.Add(appendEntry(nil, 1, &Entry{
		Origin: 31, RequestURI: "/" + strings.Repeat("a", 300), Depth: 1000, Redirects: 2, Priority: -1, Seed: true,
		ViaHost: 2, ViaOrdinal: 1 << 31, FirstSeen: someTime,
	}))
	f.Add(appendEntry(nil, 1, &Entry{RequestURI: "/from", From: SeedRef{ID: seedIDOf("http://a.test/"), Outside: 1}}))
	f.Add(appendEntry(nil, 1, &Entry{RequestURI: "/a;sid=1", Stripped: "/a", Depth: 2, ViaHost: 3,
		FirstSeen: someTime}))
	f.Add([]byte{entryFarVia, 1, '/', 0, 0, 0, 0, 9, 7, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, rest, ok := decodeEntry(b, 1, 7)
		d := wire.NewDecoder(b)
		if skipEntry(&d); ok != d.OK() || ok && !bytes.Equal(rest, d.Rest()) {
			t.Fatalf("decoding says %t and leaves %d bytes, skipping %t and %d", ok, len(rest), d.OK(), d.Len())
		}
		nthEntry(b, 3)
		countEntries(b)
		if !ok {
			return
		}
		must.True(t, sameURL(b, e.Origin, e.identity()), "%q is not itself", e.RequestURI)
		again, _, ok := decodeEntry(appendEntry(nil, 1, &e), 1, 7)
		must.True(t, ok && again == e, "%+v comes back as %+v", e, again)
	})
}

func FuzzDecodeOutcome(f *testing.F) {
	for _, d := range goldenOutcomes() {
		f.Add(AppendOutcome(nil, &d.Outcome))
	}
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, rest, ok := DecodeOutcome(b)
		if !ok {
			return
		}
		must.True(t, len(rest) < len(b), "%d bytes left of %d", len(rest), len(b))
		again, rest, ok := DecodeOutcome(AppendOutcome(nil, &o))
		must.True(t, ok && len(rest) == 0 && again == o, "%+v comes back as %+v", o, again)
	})
}

func FuzzDecodeSlots(f *testing.F) {
	s := slots{index: []uint8{0, 3, 15}, body: [][]byte{{1}, {}, {2, 3}}}
	f.Add(s.append(nil))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := decodeSlots(b)
		for index := range uint8(blockSize) {
			body, found := findSlot(b, index)
			if !ok {
				continue
			}
			i := bytes.IndexByte(s.index, index)
			must.True(t, found == (i >= 0) && (!found || bytes.Equal(body, s.body[i])),
				"index %d: search finds %t, decoding %d", index, found, i)
		}
	})
}

func FuzzDecodeRow(f *testing.F) {
	r := hostRow{
		name: []byte("a.example"), next: 2, politeness: []byte("p"),
		origins: []originRow{{secure: true, port: 443, Backlog: Backlog{Queued: 2}}},
		recent:  []recentOutcome{{1, AppendOutcome(nil, &Outcome{State: Fetched})}},
		tail:    appendEntry(appendEntry(nil, 1, &Entry{RequestURI: "/a"}), 1, &Entry{RequestURI: "/b"}),
	}
	f.Add(r.append(nil))
	f.Add(rowVersion1(&r))
	r.plain, r.queries, r.digests = 1, tally{{1, 5}, {2, 1 << 31}}, tally{{3, 1}}
	f.Add(r.append(nil))
	r.site, r.errors = []byte("site"), errorCounts{{ReasonStatus, 5}, {ReasonLoop, 300}}
	for n := range uint64(3) {
		r.payloads = binary.BigEndian.AppendUint64(r.payloads, n)
		r.payloads = appendPayload(r.payloads, &Payload{SHA256: [32]byte{1}, Ordinal: 1, At: someTime})
	}
	r.wall = []byte("wall")
	f.Add(r.append(nil))
	f.Add([]byte{rowVersion, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r hostRow
		if !r.decode(1, b) {
			return
		}
		if len(r.site) == 0 {
			r.site = nil // an empty one is not written again
		}
		if len(r.wall) == 0 {
			r.wall = nil
		}
		var again hostRow
		must.True(t, again.decode(1, r.append(nil)) && reflect.DeepEqual(again, r), "%+v comes back as %+v", r, again)
		var passed hostRow
		must.True(t, passed.decodePayloads(1, b) && bytes.Equal(passed.payloads, r.payloads),
			"decoding finds the payloads %x, passing over the rest %x", r.payloads, passed.payloads)
		rd := reader{row: r}
		for n := rd.row.spilled; n < rd.row.next && n < rd.row.spilled+100; n++ {
			rd.entry(n)
		}
		rd.row.backlog()
		rd.row.host()
	})
}

func FuzzDecodeTraps(f *testing.F) {
	f.Add(appendTraps(nil, []TrapCount{{Reason: 1, Count: 1, Samples: []string{"https://a.example/"}},
		{Reason: 9, Count: 1 << 40}}))
	f.Add([]byte{1, 1, 3, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		counts, ok := decodeTraps(b)
		if !ok {
			return
		}
		counts = countTrap(countTrap(counts, 5, "https://b.example/"), 200, strings.Repeat("c", 600))
		again, ok := decodeTraps(appendTraps(nil, counts))
		must.True(t, ok && reflect.DeepEqual(again, counts), "%+v comes back as %+v", counts, again)
	})
}

func FuzzInspect(f *testing.F) {
	meta := make([]byte, 200)
	f.Add(meta)
	f.Fuzz(func(t *testing.T, b []byte) {
		need, err := boltSize(bytes.NewReader(b))
		must.True(t, err != nil || need > 0, "%d bytes needed", need)
	})
}
