package storage

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// rowsOf counts the rows of a host by bucket, other than those of the host itself.
func rowsOf(t *testing.T, s *Store, host HostID) map[string]int {
	t.Helper()
	rows := make(map[string]int)
	must.Do(t, s.db.View(func(tx *txn) error {
		for _, name := range [][]byte{
			bucketURL, bucketSeen, bucketState, bucketDue, bucketRecrawl, bucketTrap, bucketPayload, bucketMetadata,
		} {
			c := tx.Bucket(name).Cursor()
			for k, _ := c.Seek(appendHostKey(nil, host)); k != nil && hostOfKey(k) == host; k, _ = c.Next() {
				rows[string(name)]++
			}
		}
		return nil
	}))
	return rows
}

// grownHosts fills a store with two hosts that have rows in every bucket.
func grownHosts(t *testing.T, s *Store, urls int) {
	t.Helper()
	var b Batch
	for host := HostID(1); host <= 2; host++ {
		name := fmt.Sprintf("host%d.example", host)
		for i, f := range found(t, s, numbered(name, 0, urls)...) {
			f.At = someTime.Add(time.Duration(i) * time.Second)
			f.Priority = int8(i % 3)
			if i%4 == 0 {
				f.Metadata, _ = Metadata{"key": {"value"}}.Encode()
			}
			b.Found = append(b.Found, f)
			o := Outcome{State: Fetched, At: someTime}
			if i%5 > 2 {
				o.Due = someTime.Add(time.Hour)
			}
			if i%5 == 4 {
				o.State = Retrying
			}
			if i%5 > 0 {
				b.Done = append(b.Done, Done{Host: host, Ordinal: uint32(i), Priority: f.Priority, Outcome: o})
			}
		}
		for n := range uint64(40) {
			b.Payloads = append(b.Payloads,
				Payload{Host: host, Digest: modelDigest(n), Ordinal: uint32(n), At: someTime})
		}
		b.Refused = append(b.Refused, Refused{Host: name, Reason: 1, URL: parse(t, "https://"+name+"/a/b/c")})
	}
	mustCommit(t, s, &b)
	for bucket, n := range rowsOf(t, s, 1) {
		must.True(t, n != 0, "no rows in bucket %s", bucket)
	}
}

// TestPurgeHost deletes all URLs of a host in steps, each in a new process. After each the file is
// sound; in the end nothing of the URLs is left, and they are new when they are found again. The
// other host stays as it is.
func TestPurgeHost(t *testing.T) {
	const urls = 700
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{NoSync: true})
	grownHosts(t, s, urls)
	other := rowsOf(t, s, 2)
	commit := func(p Purge) {
		mustCommit(t, s, &Batch{Purges: []Purge{p}})
		checkClean(t, s)
		mustClose(t, s)
		s = mustOpen(t, dir, Options{NoSync: true})
	}
	for below := uint32(90); below < urls+90; below += 90 {
		commit(Purge{Host: 1, Below: below})
	}
	if h, err := s.HostByID(1); err != nil || h.Counts != [numStates]uint32{} || h.First != urls || h.Tail != urls {
		t.Fatalf("host is %+v, %v", h, err)
	}
	assert.Equal(t, s.Counters().URLs, uint64(urls), "URLs are left")
	_, known, _ := s.Payload(1, modelDigest(1))
	assert.True(t, !known, "a payload of a deleted URL is found")
	mustCommit(t, s, &Batch{Found: found(t, s, numbered("host1.example", 5, 6)...)})
	checkClean(t, s)
	for from := uint64(0); ; {
		to := must.Get(s.PurgeRange(1, from))(t)
		to = min(to, from|(1<<62-1)) // in four parts
		commit(Purge{Host: 1, From: from, To: to})
		if from = to + 1; from == 0 {
			break
		}
	}
	assert.AtMost(t, len(rowsOf(t, s, 1)), 0, "rows of the host are left")
	got := rowsOf(t, s, 2)
	assert.True(t, maps.Equal(got, other), "rows of another host are %v, were %v", got, other)
	b := Batch{Found: found(t, s, numbered("host1.example", 0, 10)...), InsertResults: make([]InsertResult, 10)}
	if r := mustCommit(t, s, &b); r.Added != 9 || b.InsertResults[5] != InsertKnown {
		t.Errorf("%d of 10 deleted URLs are new, the one that was found before is %d", r.Added, b.InsertResults[5])
	}
	mustCommit(t, s, &Batch{Done: []Done{{Host: 1, Ordinal: 7, Outcome: Outcome{State: Fetched}}}})
	checkClean(t, s)
	mustClose(t, s)
}

// TestMetadata puts metadata with new and with known URLs.
func TestMetadata(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	put := func(url string, m Metadata, o *Outcome) Result {
		t.Helper()
		b := Batch{Found: found(t, s, url)}
		encoded := must.Get(m.Encode())(t)
		b.Found[0].Metadata, b.Found[0].Outcome = encoded, o
		r := mustCommit(t, s, &b)
		checkClean(t, s)
		return r
	}
	want := func(ordinal uint32, want Metadata) {
		t.Helper()
		if got, err := s.Metadata(1, ordinal); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("metadata of URL %d are %v, %v, want %v", ordinal, got, err, want)
		}
	}
	first, second := Metadata{"b": {"2", "1"}, "a": {}}, Metadata{"c": {strings.Repeat("x", 16_000)}}
	later := Outcome{State: Retrying, At: someTime, Due: someTime.Add(time.Hour)}
	completed := Outcome{State: Fetched, At: someTime}
	put("http://a.example/0", first, nil)
	put("http://a.example/1", nil, nil)
	want(0, first)
	want(1, nil)
	assert.Equal(t, rowsOf(t, s, 1)[string(bucketMetadata)], 1, "rows for one URL with metadata")
	assert.AtMost(t, len(put("http://a.example/0", second, nil).Set), 0, "a discovery of a known URL set")
	want(0, first)
	r := put("http://a.example/0", second, &later)
	assert.True(t, len(r.Set) == 1 && r.Set[0] == (Position{1, 0}) && r.Hosts[0].Due == 1 &&
		r.Hosts[0].NextDue == Seconds(later.Due), "a known URL with a date: %+v", r)
	want(0, second)
	put("http://a.example/0", first, &completed)
	want(0, first) // it is kept when the URL is completed
	put("http://a.example/0", nil, &completed)
	want(0, nil)
	put("http://a.example/2", second, &later)
	want(2, second)

	assert.Fails((Metadata{"c": {strings.Repeat("x", MaxMetadata)}}).Encode())(t, ErrMetadata, "too much")
	b := Batch{Found: found(t, s, "http://a.example/3")}
	b.Found[0].Metadata = bytes.Repeat([]byte{0}, MaxMetadata+1)
	assert.Fails(s.Commit(&b))(t, ErrMetadata, "too much, encoded")
}

// TestEraseMetadata erases a host that the metadata of another one name.
func TestEraseMetadata(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{NoSync: true})
	b := Batch{Found: found(t, s, "http://gone.example/", "http://kept.example/", "http://kept.example/2")}
	b.Found[1].Metadata, _ = Metadata{"url.path": {"http://gone.example/", "http://kept.example/"},
		"depth": {"1"}}.Encode()
	b.Found[2].Metadata, _ = Metadata{"from": {"gone.example"}}.Encode()
	mustCommit(t, s, &b)
	erased := eraseNames(t, s, weburl.Names{Name: "gone.example"})
	s = mustOpen(t, dir, Options{NoSync: true})
	defer func() { mustClose(t, s) }()
	checkClean(t, s)
	got, err := s.Metadata(2, 0)
	assert.True(t, err == nil &&
		reflect.DeepEqual(got, (Metadata{"url.path": {"http://kept.example/"}, "depth": {"1"}})) &&
		erased.Mentions == 2, "metadata of another host are %v, %v; %+v", got, err, erased)
	assert.True(t, !bytes.Contains(readFile(t, s.Path()), []byte("gone.example")),
		"the file still names the erased host")
}

func FuzzDecodeMetadata(f *testing.F) {
	for _, m := range []Metadata{nil, {"": {}}, {"a": {"b", ""}, "c": {"d"}}} {
		b, _ := m.Encode()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := DecodeMetadata(b)
		if !ok {
			return
		}
		again, err := m.Encode()
		if back, ok := DecodeMetadata(again); err != nil || !ok || !reflect.DeepEqual(back, m) {
			t.Errorf("%v becomes %v, %v", m, back, err)
		}
	})
}
