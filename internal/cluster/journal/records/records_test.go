package records

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

var updateGolden = flag.Bool("update", false, "write testdata/record-*.txt: only together with FORMAT.md and Version")

// someTime is a whole second, as records hold times.
func someTime() time.Time { return time.Unix(1_790_000_000, 0) }

// fullBatch has a value in every field of every item.
func fullBatch(t testing.TB) *storage.Batch {
	t.Helper()
	u := parse(t, "https://www.example.com:8443/a/b?c=d&sid=1")
	outcome := storage.Outcome{
		State: storage.Retrying, Reason: storage.ReasonStatus, Status: 503, Attempts: 2,
		At: someTime(), Due: someTime().Add(time.Hour),
		Bytes: 20_000, Digest: 0xd1d2d3d4d5d6d7d8, Line: 7, ETag: `"etag"`, Modified: "Sun, 06 Nov 1994 08:49:37 GMT",
		History: [8]byte{1, 2, 3}, Simhash: 5, Note: "note", Usage: "usage", Stamp: 7,
	}
	metadata := must.Get(storage.Metadata{"key": {"value"}}.Encode())(t)
	f := storage.Found{
		URL: u, Fingerprint: 7, Stripped: "/a/b?c=d", Depth: 3, Redirects: 1,
		Seed: true, Sitemap: true, Frequency: 4, Priority: -5, ViaHost: 2, ViaOrdinal: 9, At: someTime(), Listed: true,
		From:     storage.SeedRef{ID: storage.SeedID{5, 4, 3, 2, 1}, Outside: 2},
		Modified: someTime().Add(-time.Hour), Metadata: metadata,
		Outcome: &outcome,
	}
	sibling := f
	sibling.URL, sibling.Stripped, sibling.Outcome = parse(t, "https://www.example.com:8443/a/b?c=e"), "", nil
	return &storage.Batch{
		Found: []storage.Found{f, sibling},
		Done: []storage.Done{
			{Host: 2, Ordinal: 8, Origin: 1, Priority: 3, When: storage.In(storage.Queued, storage.Failed),
				Outcome: outcome},
			{Host: 2, Ordinal: 9, Outcome: storage.Outcome{
				State: storage.Fetched, Status: 200, At: someTime(), Note: strings.Repeat("n", 200)}},
		},
		Hosts: []storage.HostUpdate{{Host: 2, Politeness: []byte("polite"), Site: []byte{}, Wall: []byte("wall"),
			Requests: 1,
			Bytes:    20_000, Cursors: []storage.Cursor{{Origin: 1, Next: 9}}}},
		Policies:      []storage.Policy{{Origin: u.Origin(), Record: []byte("record")}},
		RobotsHistory: []storage.Policy{{Origin: u.Origin(), Record: []byte("past")}},
		Ensure:        []string{"other.example"},
		Seeds: []storage.SeedRow{{URL: "https://www.example.com/", Value: []byte{}},
			{URL: "https://www.example.com/a/", Value: []byte("{}")}, {URL: "https://www.example.com/b/"}},
		Refused: []storage.Refused{{Host: "www.example.com", Reason: storage.TrapDepth, URL: u}},
		Payloads: []storage.Payload{
			{Host: 2, Digest: 0x0101010101010101, SHA256: [32]byte(bytes.Repeat([]byte{1}, 32)), Ordinal: 8,
				At: someTime()},
			{Host: 2, Digest: 4, SHA256: [32]byte(bytes.Repeat([]byte{2}, 32)), Ordinal: 9, At: someTime()},
		},
		Purges: []storage.Purge{{Host: 3, Below: 4, From: 5, To: 1 << 63}},
		Marks:  map[string][]byte{"mark": []byte("value"), "none": nil, "empty": {}},
	}
}

// notLogged are the fields that a record does not have: Fingerprint follows from the URL, and
// InsertResults is an answer.
var notLogged = []string{"Batch.InsertResults"}

// TestRecordHasAllFields fails when the types of a batch get a field that fullBatch does not set:
// add it there, to encoder and decoder, and to Version and FORMAT.md. A field that the code
// does not know comes back as its zero value.
func TestRecordHasAllFields(t *testing.T) {
	b := fullBatch(t)
	sheet := b.Found[1]
	sheet.URL, sheet.Room = parse(t, "https://www.example.com:8443/a.css"), 9
	b.Found = append(b.Found, sheet)
	unset := make(map[string]bool)
	allFields(reflect.ValueOf(*b), unset)
	for name, is := range unset {
		assert.True(t, !is || slices.Contains(notLogged, name), "no item of fullBatch sets %s", name)
	}
	encoded := must.Get(Codec{}.Encode(&storage.Change{Number: 2, Batch: *b}))(t)
	got := must.Get(Codec{}.Decode(encoded))(t)
	for i := range b.Found {
		got.Batch.Found[i].Fingerprint = b.Found[i].Fingerprint
	}
	if !reflect.DeepEqual(&got.Batch, b) {
		t.Errorf("decoded\n%+v, want\n%+v", got.Batch, *b)
	}
}

// allFields records for each exported field of the structs in v whether no value sets it.
func allFields(v reflect.Value, unset map[string]bool) {
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			allFields(v.Index(i), unset)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			allFields(v.Elem(), unset)
		}
	case reflect.Struct:
		if pkg := v.Type().PkgPath(); !strings.HasSuffix(pkg, "/storage") {
			return
		}
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			before, seen := unset[name]
			unset[name] = v.Field(i).IsZero() && (before || !seen)
			allFields(v.Field(i), unset)
		}
	}
}

// TestGoldenRecord compares the bytes of a record with those of FORMAT.md's version.
func TestGoldenRecord(t *testing.T) {
	full := fullBatch(t)
	goldenRecord(t, 2, full)
	for i := range full.Found {
		full.Found[i].From = storage.SeedRef{}
	}
	full.Seeds = full.Seeds[:1]
	goldenRecord(t, 1, full)
}

func goldenRecord(t *testing.T, version byte, batch *storage.Batch) {
	t.Helper()
	c := storage.Change{
		Number: 1, Writer: storage.WriterID{1, 2, 3, 4, 5, 6, 7, 8}, Key: []byte("0123456789abcdef"),
		Limits:  storage.Limits{Queries: 2000, SameDigest: 200},
		Notices: []storage.Notice{{Call: 3, Due: 1_800_000_000, History: [8]byte{8}}, {Call: 5}},
		Batch:   *batch,
		Local:   map[string][]byte{storage.MarkLedger: storage.EncodeOffset(4711), "output": []byte("[]")},
	}
	b := must.Get(Codec{}.Encode(&c))(t)
	var text strings.Builder
	for part := range slices.Chunk(b, 32) {
		fmt.Fprintf(&text, "%x\n", part)
	}
	assert.Equal(t, b[0], version, "the record has version")
	path := filepath.Join("testdata", fmt.Sprintf("record-%d.txt", version))
	if *updateGolden {
		must.Do(t, os.WriteFile(path, []byte(text.String()), 0o644))
	}
	if want, err := os.ReadFile(path); text.String() != string(want) || err != nil {
		t.Errorf("the record is\n%s, want\n%s", text.String(), want)
	}
	back := must.Get(Codec{}.Decode(b))(t)
	again, err := Codec{}.Encode(back)
	assert.True(t, err == nil && bytes.Equal(again, b), "decoded and encoded again it is %x, %v", again, err)
	for n := range b { // cut short
		if _, err := (Codec{}).Decode(b[:n]); err == nil && n != len(b) && !endsSection(b, n) {
			t.Fatalf("the first %d of %d bytes are a record", n, len(b))
		}
	}
	b[0] = Version + 1
	if _, err := (Codec{}).Decode(b); !errors.Is(err, storage.ErrNewer) ||
		!strings.Contains(err.Error(), "use a newer amble") {
		t.Errorf("a newer version: %v", err)
	}
}

// endsSection reports whether a section ends at n, so that the record could end there too.
func endsSection(b []byte, n int) bool {
	head := 2 + 1 + 8 + keySize
	for at := head; at <= n; {
		if at == n {
			return true
		}
		size, width := binary.Uvarint(b[at+1:])
		at += 1 + width + int(size)
	}
	return false
}

// TestRecordOfAPage: a fetched page with ten links takes at most 750 bytes, before the log packs
// them.
func TestRecordOfAPage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const pages = 50
	b := &storage.Batch{Marks: map[string][]byte{storage.MarkLedger: storage.EncodeOffset(1 << 40),
		"output": []byte(strings.Repeat(`{"file":"pages-20261122-000123.jsonl.gz","bytes":123456789},`, 4))}}
	words := strings.Fields("news archive products 2026 articles science how-to the guide review")
	word := func() string { return words[rng.IntN(len(words))] }
	for page := range pages {
		host := fmt.Sprintf("www.host%d.example", page%10)
		id := storage.HostID(page%10*1000 + 1)
		for range 10 {
			uri := fmt.Sprintf("/%s/%s/%s-%s-%s-%06d.html", word(), word(), word(), word(), word(), rng.IntN(1e6))
			u := parse(t, "https://"+host+uri)
			b.Found = append(b.Found, storage.Found{URL: u, Depth: 3, ViaHost: id,
				ViaOrdinal: uint32(page), At: someTime().Add(time.Duration(page) * time.Second)})
		}
		var sum [32]byte
		for i := range sum {
			sum[i] = byte(rng.Uint32())
		}
		digest := binary.BigEndian.Uint64(sum[:])
		o := storage.Outcome{State: storage.Fetched, Status: 200, At: someTime(), Bytes: 20_000, Digest: digest,
			ETag: `"5f3a-61b2c3d4e5f60"`, Modified: "Sun, 06 Nov 1994 08:49:37 GMT", Simhash: rng.Uint64(),
			Due: someTime(), History: [8]byte{1}}
		b.Done = append(b.Done, storage.Done{Host: id, Ordinal: uint32(page), Outcome: o})
		b.Hosts = append(b.Hosts, storage.HostUpdate{Host: id, Politeness: make([]byte, 60), Site: make([]byte, 40),
			Requests: 1, Bytes: 20_000, Cursors: []storage.Cursor{{Origin: 0, Next: uint32(page)}}})
		b.Payloads = append(b.Payloads,
			storage.Payload{Host: id, Digest: digest, SHA256: sum, Ordinal: uint32(page), At: someTime()})
	}
	c := storage.Change{Number: 1 << 30, Batch: *b, Local: b.Marks}
	c.Limits = storage.Limits{Queries: 2000, SameDigest: 200}
	c.Batch.Marks = nil
	encoded := must.Get(Codec{}.Encode(&c))(t)
	t.Logf("%d bytes a page", len(encoded)/pages)
	assert.AtMost(t, len(encoded)/pages, 750, "bytes a page with ten links")
}

// FuzzRecord: whatever comes from a log, it is applied or refused, and what is read is written as it
// was.
func FuzzRecord(f *testing.F) {
	key := []byte("0123456789abcdef")
	var urls []storage.Found
	for _, text := range []string{"http://a.test/", "http://a.test/b"} {
		urls = append(urls, storage.Found{URL: parse(f, text), At: someTime()})
	}
	for _, c := range []storage.Change{
		{Number: 1, Key: key, Limits: storage.Limits{HostURLs: 1, Queries: 2, SameDigest: 3}, Batch: *fullBatch(f)},
		{Number: 1, Key: key, Batch: storage.Batch{Found: urls,
			Done:  []storage.Done{{Host: 1, Outcome: storage.Outcome{State: storage.Fetched, At: someTime()}}},
			Hosts: []storage.HostUpdate{{Host: 1, Requests: 1, Cursors: []storage.Cursor{{Origin: 0, Next: 1}}}}}},
	} {
		b := must.Get(Codec{}.Encode(&c))(f)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Codec{}.Decode(b)
		if err != nil {
			assert.True(t, errors.Is(err, storage.ErrRecord) || errors.Is(err, storage.ErrNewer), "the error is %v",
				err)
			return
		}
		encoded, err := Codec{}.Encode(c)
		must.Do(t, err, "it is decoded but not encoded")
		again, err := Codec{}.Decode(encoded)
		must.True(t, err == nil && reflect.DeepEqual(again, c), "encoded and decoded again:\n%+v, %v, want\n%+v", again,
			err, c)
		if c.Number == 1 {
			applied(t, b)
		}
	})
}

// applied replays a record into a fresh store: all of it, or nothing.
func applied(t *testing.T, record []byte) {
	s := must.Get(storage.Open(t.TempDir(), storage.Options{NoSync: true, MapBytes: 1 << 24}))(t)
	defer s.Close()
	before := rows(t, s)
	if err := s.Replay(Codec{}, storage.LogRecord{Sequence: 1, Data: record}); err != nil {
		assert.Equal(t, rows(t, s), before, "a record that cannot be applied", err, "changed")
		return
	}
	report := func(f storage.Finding) { t.Errorf("check finds: %s", f.Text) }
	assert.NoError(t, s.Check(t.Context(), report))
}

// TestMarksOfADirectory: a record whose marks are in the wrong section is refused.
func TestMarksOfADirectory(t *testing.T) {
	for _, c := range []storage.Change{
		{Batch: storage.Batch{Marks: map[string][]byte{storage.MarkOutput: {1}}}},
		{Local: map[string][]byte{"paused": {1}}},
	} {
		c.Number, c.Key = 1, []byte("0123456789abcdef")
		b := must.Get(Codec{}.Encode(&c))(t)
		s := must.Get(storage.Open(t.TempDir(), storage.Options{NoSync: true}))(t)
		assert.Is(t, s.Replay(Codec{}, storage.LogRecord{Sequence: 1, Data: b}), storage.ErrRecord, c)
		s.Close()
	}
}

func rows(t *testing.T, s *storage.Store) string {
	t.Helper()
	var b strings.Builder
	must.Do(t, s.WriteRows(&b))
	return b.String()
}

func parse(t testing.TB, text string) weburl.URL {
	t.Helper()
	return must.Get(weburl.Parse(text))(t)
}
