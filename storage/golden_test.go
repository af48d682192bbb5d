package storage

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var updateGolden = flag.Bool("update", false,
	"write testdata/golden-6.txt: only together with FORMAT.md and Version")

// goldenStore writes a store that has every kind of row, with a fixed key.
func goldenStore(t *testing.T) *Store {
	s := openTemp(t, Options{MaxQueries: 2, MaxSameDigest: 10})
	copy(s.key[:], "0123456789abcdef")
	must.Do(t, s.db.Update(func(tx *txn) error { return tx.Bucket(bucketMeta).Put(metaKey, s.key[:]) }))
	b := Batch{
		Found: found(t, s, append(numbered("www.example.com", 0, 66), "http://[2001:db8::1]:8080/a?b=c")...),
		Seeds: []SeedRow{{"https://www.example.com/joined", []byte{}}, {"https://www.example.com/list", []byte("{}")}},
		Marks: map[string][]byte{MarkLedger: EncodeOffset(4711)},
	}
	b.Found[64].Seed, b.Found[64].Depth = true, 300
	b.Found[63].Sitemap, b.Found[63].Frequency = true, 7
	b.Found[65].ViaHost, b.Found[65].ViaOrdinal = 1, 200
	last := &b.Found[66]
	last.Redirects, last.Priority, last.ViaHost, last.ViaOrdinal = 3, -5, 1, 7
	last.From = SeedRef{ID: seedIDOf("https://www.example.com/list"), Outside: 2}
	mustCommit(t, s, &b)
	mustCommit(t, s, &Batch{
		Done: append(goldenOutcomes(), Done{Host: 2, Priority: -5, Outcome: Outcome{
			State: Retrying, Reason: ReasonFetch + 2, Attempts: 3, At: someTime,
			Due: someTime.Add(time.Hour + time.Millisecond),
		}}),
		Hosts: []HostUpdate{{Host: 1, Politeness: []byte("polite"), Requests: 18, Bytes: 360_000,
			Site: []byte("site"), Wall: []byte("wall"), Cursors: []Cursor{{0, 17}}}},
	})
	mustCommit(t, s, &Batch{Policies: []Policy{{parse(t, "https://www.example.com/").Origin(), []byte("record")}}})
	mustCommit(t, s, &Batch{RobotsHistory: []Policy{{parse(t, "https://www.example.com/").Origin(), []byte("past")}}})
	mustCommit(t, s, &Batch{Payloads: goldenPayloads()})
	goldenTraps(t, s)
	goldenMetadata(t, s)
	return s
}

// goldenTraps adds a third host, whose rows have what not every host's have.
func goldenTraps(t *testing.T, s *Store) {
	b := Batch{Found: found(t, s, "https://traps.example/p?1", "https://traps.example/p?2",
		"https://traps.example/p?3", "http://traps.example/first")}
	b.Found[3].Priority = 5
	id := "https://traps.example/session"
	b.Found = append(b.Found, withSession(t, s, id+";sid=1", id), withSession(t, s, id+";sid=2", id))
	b.Done = []Done{{Host: 3, Outcome: Outcome{State: Fetched, Status: 200, At: someTime, Bytes: 20_000, Digest: 0xd3}}}
	b.Refused = []Refused{{Host: "traps.example", Reason: 1, URL: parse(t, "https://traps.example/a/b/c")}}
	mustCommit(t, s, &b)
}

// goldenMetadata adds a fourth host, with metadata and with URLs that were deleted from its row.
func goldenMetadata(t *testing.T, s *Store) {
	b := Batch{Found: found(t, s, numbered("metadata.example", 0, 20)...), Purges: []Purge{{Host: 4, Below: 18}}}
	b.Found[19].Metadata, _ = Metadata{"url.path": {"https://www.example.com/", "https://a.example/"},
		"depth": {"2"}}.Encode()
	b.Found[19].Outcome = &Outcome{State: Retrying, At: someTime, Due: someTime.Add(time.Hour)}
	mustCommit(t, s, &b)
}

// goldenOutcomes returns seventeen outcomes, which go to the state bucket, and one that stays in
// the row.
func goldenOutcomes() []Done {
	var all []Done
	for n := range uint32(18) {
		all = append(all, Done{Host: 1, Ordinal: n, Outcome: Outcome{State: Fetched, Status: 200, At: someTime,
			Bytes: 20_000, Digest: 0xd1}})
	}
	all[1].Outcome = Outcome{State: Denied, Reason: ReasonRobots, At: someTime, Line: 200}
	o := &all[2].Outcome
	o.Due, o.Simhash = someTime.Add(time.Hour), 0x51
	o.ETag, o.Modified, o.History = `"tag"`, someTime.UTC().Format(httpDate), [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	all[3].Outcome.Modified = "yesterday"
	all[4].Outcome = Outcome{State: Failed, Reason: ReasonWall, Status: 402, At: someTime, Note: "crawler-price: USD 1"}
	all[5].Outcome.Usage = "\x48\x03"
	all[17].Outcome.State, all[17].Outcome.Status = Redirected, 301
	return all
}

// goldenPayloads returns thirty-three payloads, which go to the payload bucket, and one that stays
// in the row.
func goldenPayloads() []Payload {
	var all []Payload
	for n := range uint32(34) {
		all = append(all, Payload{Host: 1, Digest: 0xd1 + uint64(n)<<56, SHA256: [32]byte{0x51, 31: byte(n)},
			Ordinal: n, At: someTime})
	}
	return all
}

// TestGolden compares every row of a small store with the bytes on record. If it fails, existing
// files cannot be read any more: change Version, FORMAT.md and the code that rewrites older files,
// then run the test with -update.
func TestGolden(t *testing.T) {
	s := goldenStore(t)
	var out bytes.Buffer
	err := s.db.View(func(tx *txn) error {
		return tx.Buckets(func(name []byte, b *bucket) error {
			return b.Bolt.ForEach(func(k, v []byte) error { // with its checksum
				fmt.Fprintf(&out, "%s %x\n", name, k)
				for len(v) > 48 {
					fmt.Fprintf(&out, "\t%x\n", v[:48])
					v = v[48:]
				}
				fmt.Fprintf(&out, "\t%x\n", v)
				return nil
			})
		})
	})
	must.Do(t, err)
	path := filepath.Join("testdata", "golden-6.txt")
	if *updateGolden {
		must.Do(t, os.WriteFile(path, out.Bytes(), 0o644))
	}
	got, want := strings.Split(out.String(), "\n"), strings.Split(string(readFile(t, path)), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d of %s differs:\ngot  %q\nwant %q", i+1, path, got[min(i, len(got)-1)],
				want[min(i, len(want)-1)])
		}
	}
}

// TestSizes checks the table of sizes in FORMAT.md.
func TestSizes(t *testing.T) {
	fetched := Outcome{State: Fetched, Status: 200, At: someTime, Bytes: 20_000, Digest: 0xd1d1d1d1d1d1d1d1}
	validated := fetched
	validated.ETag, validated.Modified = strings.Repeat("e", 20), "Mon, 02 Jan 2006 15:04:05 GMT"
	stated := fetched
	stated.Usage = "\x48\x03\x49\x03"
	recrawled := fetched
	recrawled.Due, recrawled.History, recrawled.Simhash = someTime, [8]byte{1}, 1
	e := Entry{RequestURI: strings.Repeat("u", 43), Depth: 3, FirstSeen: someTime, ViaHost: 1, ViaOrdinal: 1000}
	metadata, _ := Metadata{"depth": {strings.Repeat("v", 20)}}.Encode()
	row := hostRow{origins: make([]originRow, 1)}
	withBody := row
	withBody.payloads = make(recentPayloads, payloadItemSize)
	for _, c := range []struct {
		what  string
		got   int
		bytes int
	}{
		{"URL", len(appendEntry(nil, 2, &e)), 56},
		{"fingerprint", len(mergeSeen(nil, nil, make([]seenItem, 1))), 12},
		{"outcome: fetched, 200, 20,000 bytes, digest", len(AppendOutcome(nil, &fetched)), 21},
		{"the same, planned for a recrawl, with a simhash", len(AppendOutcome(nil, &recrawled)), 42},
		{"the same, with two preferences of a robots.txt", len(AppendOutcome(nil, &stated)), 27},
		{"the same with an ETag of 20 bytes and a usual Last-Modified", len(AppendOutcome(nil, &validated)), 47},
		{"row of a host with one origin, without name, politeness, outcomes and URLs", len(row.append(nil)), 89},
		{"a payload in the row", len(withBody.append(nil)) - len(row.append(nil)) - 1, 48},
		{"metadata: a key of 5 bytes with a value of 20, with their key", len(appendURLKey(nil, 1, 1)) +
			len(metadata), 36},
		{"due row", len(appendDueKey(nil, 1, 0, 0, 1, 1)), 14},
		{"recrawl row", len(appendRecrawlKey(nil, 1, 0, 1, 1)), 13},
	} {
		assert.Equal(t, c.got, c.bytes, c.what, "takes bytes")
		assert.Contains(t, string(readFile(t, "FORMAT.md")), fmt.Sprintf("| %s | %d |", c.what, c.bytes),
			"FORMAT.md does not say")
	}
}

// TestFormatNamesEveryNumber checks the enumerations of FORMAT.md.
func TestFormatNamesEveryNumber(t *testing.T) {
	text := string(readFile(t, "FORMAT.md"))
	for i, name := range stateNames {
		assert.Contains(t, text, fmt.Sprintf("%d %s", i, name), "FORMAT.md does not name state", i, name)
	}
	for _, name := range buckets() {
		assert.Contains(t, text, fmt.Sprintf("| `%s` |", name), "FORMAT.md does not name bucket", name)
	}
	assert.Contains(t, text, fmt.Sprintf("version **%d**", Version), "FORMAT.md does not describe version", Version)
	assert.Contains(t, text, fmt.Sprintf("at most %d of them", maxSeenItems),
		"FORMAT.md does not say how many fingerprints a row")
}

// seedIDOf is the id of the seed with a URL, as FORMAT.md has it.
func seedIDOf(url string) SeedID {
	sum := sha256.Sum256([]byte(url))
	return SeedID(sum[:5])
}
