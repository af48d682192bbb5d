package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// fullBatch has a value in every field of every item.
func fullBatch(t tester, s *Store) *Batch {
	u := parse(t, "https://www.example.com:8443/a/b?c=d&sid=1")
	outcome := Outcome{
		State: Retrying, Reason: ReasonStatus, Status: 503, Attempts: 2, At: someTime, Due: someTime.Add(time.Hour),
		Bytes: 20_000, Digest: 0xd1d2d3d4d5d6d7d8, Line: 7, ETag: `"etag"`, Modified: "Sun, 06 Nov 1994 08:49:37 GMT",
		History: [8]byte{1, 2, 3}, Simhash: 5, Note: "note", Usage: "usage", Stamp: 7,
	}
	metadata, err := Metadata{"key": {"value"}}.Encode()
	if err != nil {
		t.Fatalf("%v", err)
	}
	f := Found{
		URL: u, Fingerprint: fingerprint(&s.rows, true, 8443, "/a/b?c=d"), Stripped: "/a/b?c=d", Depth: 3, Redirects: 1,
		Seed: true, Sitemap: true, Frequency: 4, Priority: -5, ViaHost: 2, ViaOrdinal: 9, At: someTime, Listed: true,
		From: SeedRef{ID: SeedID{5, 4, 3, 2, 1}, Outside: 2}, Modified: someTime.Add(-time.Hour), Metadata: metadata,
		Outcome: &outcome,
	}
	sibling := f
	sibling.URL, sibling.Stripped, sibling.Outcome = parse(t, "https://www.example.com:8443/a/b?c=e"), "", nil
	sibling.Fingerprint = s.Fingerprint(sibling.URL)
	return &Batch{
		Found: []Found{f, sibling},
		Done: []Done{
			{Host: 2, Ordinal: 8, Origin: 1, Priority: 3, When: In(Queued, Failed), Outcome: outcome},
			{Host: 2, Ordinal: 9,
				Outcome: Outcome{State: Fetched, Status: 200, At: someTime, Note: strings.Repeat("n", 200)}},
		},
		Hosts: []HostUpdate{{Host: 2, Politeness: []byte("polite"), Site: []byte{}, Wall: []byte("wall"), Requests: 1,
			Bytes: 20_000, Cursors: []Cursor{{Origin: 1, Next: 9}}}},
		Policies:      []Policy{{u.Origin(), []byte("record")}},
		RobotsHistory: []Policy{{u.Origin(), []byte("past")}},
		Ensure:        []string{"other.example"},
		Seeds: []SeedRow{{"https://www.example.com/", []byte{}}, {"https://www.example.com/a/", []byte("{}")},
			{"https://www.example.com/b/", nil}},
		Refused: []Refused{{Host: "www.example.com", Reason: TrapDepth, URL: u}},
		Payloads: []Payload{
			{Host: 2, Digest: 0x0101010101010101, SHA256: [32]byte(bytes.Repeat([]byte{1}, 32)), Ordinal: 8,
				At: someTime},
			{Host: 2, Digest: 4, SHA256: [32]byte(bytes.Repeat([]byte{2}, 32)), Ordinal: 9, At: someTime},
		},
		Purges: []Purge{{Host: 3, Below: 4, From: 5, To: 1 << 63}},
		Marks:  map[string][]byte{"mark": []byte("value"), "none": nil, "empty": {}},
	}
}

// notLogged are the fields that a record does not have: Fingerprint follows from the URL, and
// InsertResults is an answer.
var notLogged = []string{"Batch.InsertResults"}

// TestRecordHasAllFields fails when the types of a batch get a field that fullBatch does not set:
// add it there, to encoder and decoder, and to RecordVersion and FORMAT.md. A field that the code
// does not know comes back as its zero value.
func TestRecordHasAllFields(t *testing.T) {
	s := openTemp(t, Options{})
	b := fullBatch(t, s)
	unset := make(map[string]bool)
	allFields(reflect.ValueOf(*b), unset)
	for name, is := range unset {
		if is && !slices.Contains(notLogged, name) {
			t.Errorf("no item of fullBatch sets %s", name)
		}
	}
	r := record{number: 2, batch: *b}
	encoded, err := r.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeRecord(encoded)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.Found {
		got.batch.Found[i].Fingerprint = b.Found[i].Fingerprint
	}
	if !reflect.DeepEqual(&got.batch, b) {
		t.Errorf("decoded\n%+v, want\n%+v", got.batch, *b)
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
	s := openTemp(t, Options{})
	copy(s.key[:], "0123456789abcdef")
	full := fullBatch(t, s)
	goldenRecord(t, s, 2, full)
	for i := range full.Found {
		full.Found[i].From = SeedRef{}
	}
	full.Seeds = full.Seeds[:1]
	goldenRecord(t, s, 1, full)
}

func goldenRecord(t *testing.T, s *Store, version byte, batch *Batch) {
	t.Helper()
	r := record{
		number: 1, writer: writerID{1, 2, 3, 4, 5, 6, 7, 8}, key: s.key[:], limits: limits{0, 2000, 200},
		notices: []notice{{call: 3, due: 1_800_000_000, history: [8]byte{8}}, {call: 5}},
		batch:   *batch, local: map[string][]byte{MarkLedger: EncodeOffset(4711), "output": []byte("[]")},
	}
	b, err := r.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for part := range slices.Chunk(b, 32) {
		fmt.Fprintf(&text, "%x\n", part)
	}
	if b[0] != version {
		t.Errorf("the record has version %d, want %d", b[0], version)
	}
	path := filepath.Join("testdata", fmt.Sprintf("record-%d.txt", version))
	if *updateGolden {
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(readFile(t, path)); text.String() != want {
		t.Errorf("the record is\n%s, want\n%s", text.String(), want)
	}
	back, err := decodeRecord(b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.append(nil)
	if err != nil || !bytes.Equal(again, b) {
		t.Errorf("decoded and encoded again it is %x, %v", again, err)
	}
	for n := range b { // cut short
		if _, err := decodeRecord(b[:n]); err == nil && n != len(b) && !endsSection(b, n) {
			t.Fatalf("the first %d of %d bytes are a record", n, len(b))
		}
	}
	b[0] = RecordVersion + 1
	if _, err := decodeRecord(b); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "use a newer amble") {
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
	s := openTemp(t, Options{MaxQueries: 2000, MaxSameDigest: 200})
	rng := rand.New(rand.NewPCG(1, 2))
	const pages = 50
	b := &Batch{Marks: map[string][]byte{MarkLedger: EncodeOffset(1 << 40),
		"output": []byte(strings.Repeat(`{"file":"pages-20261122-000123.jsonl.gz","bytes":123456789},`, 4))}}
	words := strings.Fields("news archive products 2026 articles science how-to the guide review")
	word := func() string { return words[rng.IntN(len(words))] }
	for page := range pages {
		host := fmt.Sprintf("www.host%d.example", page%10)
		id := HostID(page%10*1000 + 1)
		for range 10 {
			uri := fmt.Sprintf("/%s/%s/%s-%s-%s-%06d.html", word(), word(), word(), word(), word(), rng.IntN(1e6))
			u := parse(t, "https://"+host+uri)
			b.Found = append(b.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), Depth: 3, ViaHost: id,
				ViaOrdinal: uint32(page), At: someTime.Add(time.Duration(page) * time.Second)})
		}
		var sum [32]byte
		for i := range sum {
			sum[i] = byte(rng.Uint32())
		}
		digest := binary.BigEndian.Uint64(sum[:])
		b.Done = append(b.Done, Done{Host: id, Ordinal: uint32(page), Outcome: Outcome{State: Fetched, Status: 200,
			At: someTime, Bytes: 20_000, Digest: digest, ETag: `"5f3a-61b2c3d4e5f60"`,
			Modified: "Sun, 06 Nov 1994 08:49:37 GMT", Simhash: rng.Uint64(), Due: someTime, History: [8]byte{1}}})
		b.Hosts = append(b.Hosts, HostUpdate{Host: id, Politeness: make([]byte, 60), Site: make([]byte, 40),
			Requests: 1, Bytes: 20_000, Cursors: []Cursor{{Origin: 0, Next: uint32(page)}}})
		b.Payloads = append(b.Payloads,
			Payload{Host: id, Digest: digest, SHA256: sum, Ordinal: uint32(page), At: someTime})
	}
	r := record{number: 1 << 30, limits: s.limits, batch: *b, local: b.Marks}
	encoded, err := r.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes a page", len(encoded)/pages)
	if each := len(encoded) / pages; each > 750 {
		t.Errorf("%d bytes a page with ten links", each)
	}
}

// FuzzRecord: whatever comes from a log, it is applied or refused, and what is read is written as it
// was.
func FuzzRecord(f *testing.F) {
	s := openTemp2(f)
	r := record{number: 1, key: s.key[:], limits: limits{1, 2, 3}, batch: *fullBatch(f, s)}
	full, err := r.append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	small := record{number: 1, key: s.key[:], batch: Batch{Found: found(f, s, "http://a.test/", "http://a.test/b"),
		Done:  []Done{{Host: 1, Outcome: Outcome{State: Fetched, At: someTime}}},
		Hosts: []HostUpdate{{Host: 1, Requests: 1, Cursors: []Cursor{{0, 1}}}}}}
	b, err := small.append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			if !errors.Is(err, ErrRecord) && !errors.Is(err, ErrNewer) {
				t.Errorf("the error is %v", err)
			}
			return
		}
		encoded, err := r.append(nil)
		if err != nil {
			t.Fatalf("it is decoded but not encoded: %v", err)
		}
		again, err := decodeRecord(encoded)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("encoded and decoded again:\n%+v, %v, want\n%+v", again, err, r)
		}
		if r.number != 1 {
			return
		}
		to := openTemp(t, Options{NoSync: true, MapBytes: 1 << 24})
		before := export(t, to)
		if err := to.Replay(LogRecord{1, b}); err != nil {
			if after := export(t, to); after != before {
				t.Errorf("a record that cannot be applied (%v) changed\n%s to\n%s", err, before, after)
			}
			return
		}
		checkClean(t, to)
	})
}

func openTemp2(t testing.TB) *Store {
	s, err := Open(t.TempDir(), Options{NoSync: true, MapBytes: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
