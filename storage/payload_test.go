package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// bodyAt returns a payload of the first URL of a host.
func bodyAt(host HostID, digest uint64, at int64) Payload {
	return Payload{Host: host, Digest: digest, SHA256: [32]byte{byte(at)}, At: time.Unix(at, 0)}
}

// recentItems returns payloads as a host's row holds them.
func recentItems(payloads ...*Payload) (r recentPayloads) {
	for _, p := range payloads {
		r = appendPayload(binary.BigEndian.AppendUint64(r, p.Digest), p)
	}
	return r
}

// overflow makes the payloads in the row of a host move to the bucket. The payloads that it adds
// for that are in other sets.
func overflow(t *testing.T, s *Store, host HostID) {
	t.Helper()
	var b Batch
	for n := range uint64(maxRecentPayloads + 1) {
		b.Payloads = append(b.Payloads, bodyAt(host, (1000+n)<<(64-payloadSetBits)+1, 1))
	}
	mustCommit(t, s, &b)
}

// countPayloads counts the payloads in the row of host 1, and the rows of the bucket.
func countPayloads(t *testing.T, s *Store) (row, bucket int) {
	t.Helper()
	must.Do(t, s.db.View(func(tx *txn) error {
		var r hostRow
		if b := tx.Bucket(bucketPayload); b != nil {
			bucket = b.Keys()
		}
		err := getRow(tx, 1, &r)
		row = len(r.payloads) / payloadItemSize
		return err
	}))
	return row, bucket
}

func wantPayload(t *testing.T, s *Store, want Payload) {
	t.Helper()
	got, ok, err := s.Payload(want.Host, want.Digest)
	assert.True(t, got == want && ok && err == nil, "got %+v %t %v, want %+v", got, ok, err, want)
}

func wantNoPayload(t *testing.T, s *Store, host HostID, digest uint64) {
	t.Helper()
	got, ok, err := s.Payload(host, digest)
	assert.True(t, !ok && err == nil, "a body that nobody has: %+v, %v", got, err)
}

// TestPayload: the payloads of a commit can be read afterwards, each for its host, and the last one
// counts: in the rows of hosts, after a restart, and in the bucket.
func TestPayload(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	defer func() { mustClose(t, s) }()
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1", "http://a.test/2", "http://b.test/1")})
	payload := func(host HostID, digest uint64, mark byte, ordinal uint32) Payload {
		return Payload{Host: host, Digest: digest, SHA256: [32]byte{mark}, Ordinal: ordinal,
			At: time.Unix(1e9+int64(mark), 0)}
	}
	r := mustCommit(t, s, &Batch{Payloads: []Payload{payload(2, 7, 1, 0), payload(1, 7, 2, 0), payload(1, 5, 3, 0),
		payload(1, 7, 4, 1)}})
	assert.True(t, len(r.Hosts) == 2 &&
		r.Hosts[0] == (HostChange{Host: 1, Tail: 2, Backlog: Backlog{Queued: 2}, URLs: 2}), "touched: %+v", r.Hosts)
	compare := func(t *testing.T) {
		for _, want := range []Payload{payload(1, 5, 3, 0), payload(1, 7, 4, 1), payload(2, 7, 1, 0)} {
			wantPayload(t, s, want)
		}
		wantNoPayload(t, s, 2, 5)
		wantNoPayload(t, s, 1, 6)
		wantNoPayload(t, s, 3, 7)
		checkClean(t, s)
	}
	t.Run("rows", compare)
	mustClose(t, s)
	s = mustOpen(t, dir, Options{})
	t.Run("opened again", compare)
	overflow(t, s, 1)
	overflow(t, s, 2)
	row, bucket := countPayloads(t, s)
	must.True(t, row == 2 && bucket == 2*(maxRecentPayloads+1), "the row has %d payloads, the bucket %d", row, bucket)
	t.Run("bucket", compare)

	mustCommit(t, s, &Batch{Payloads: []Payload{payload(1, 7, 9, 0)}})
	wantPayload(t, s, payload(1, 7, 9, 0)) // from the row, and the one before is in the bucket
	overflow(t, s, 1)
	wantPayload(t, s, payload(1, 7, 9, 0))
	checkClean(t, s)
}

// TestPayloadsMoveAtOnce: the payloads of a host stay in its row until it is full, and leave it
// together. A known one takes no room.
func TestPayloadsMoveAtOnce(t *testing.T) {
	s := openTemp(t, Options{})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1")})
	for round := range int64(3) {
		for digest := uint64(maxRecentPayloads); digest > 0; digest-- {
			mustCommit(t, s, &Batch{Payloads: []Payload{bodyAt(1, digest<<56, 10*round+1),
				bodyAt(1, digest<<56, 10*round+2)}})
		}
	}
	row, bucket := countPayloads(t, s)
	must.True(t, row == maxRecentPayloads && bucket == 0, "the row has %d payloads, the bucket %d", row, bucket)
	mustCommit(t, s, &Batch{Payloads: []Payload{bodyAt(1, 77, 5)}})
	if row, bucket := countPayloads(t, s); row != 0 || bucket != maxRecentPayloads+1 {
		t.Fatalf("with one more, the row has %d payloads, the bucket %d", row, bucket)
	}
	wantPayload(t, s, bodyAt(1, 77, 5))
	for digest := uint64(maxRecentPayloads); digest > 0; digest-- {
		wantPayload(t, s, bodyAt(1, digest<<56, 22))
	}
}

// TestPayloadsRefused: a payload of an unknown host or URL is an error, and nothing of its batch is
// stored.
func TestPayloadsRefused(t *testing.T) {
	s := openTemp(t, Options{})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1")})
	for _, test := range []struct {
		payload Payload
		want    string
	}{
		{Payload{Host: 2, Digest: 5}, "host 2: "},
		{Payload{Host: NoHost, Digest: 5}, "host 0: "},
		{Payload{Host: 1, Digest: 5, Ordinal: 1}, "host 1: body of URL 1, but the host has 1 URLs"},
	} {
		_, err := s.Commit(&Batch{Payloads: []Payload{bodyAt(1, 4, 1), test.payload}})
		assert.True(t, err != nil && strings.Contains(err.Error(), test.want), "commit of %+v: %v, want %q",
			test.payload, err, test.want)
		wantNoPayload(t, s, 1, 4)
		wantNoPayload(t, s, test.payload.Host, 5)
	}
	b := &Batch{Found: found(t, s, "http://a.test/2"),
		Payloads: []Payload{{Host: 1, Digest: 5, Ordinal: 1, At: someTime}}}
	mustCommit(t, s, b) // the URL comes with the same batch
	wantPayload(t, s, b.Payloads[0])
}

// TestPayloadInOlderFile: a file from before there were payloads has none, and takes them, in rows
// and in the bucket.
func TestPayloadInOlderFile(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1")})
	must.Do(t, s.db.Update(func(tx *txn) error { return tx.Bolt.DeleteBucket(bucketPayload) }))
	mustClose(t, s)
	s = mustOpen(t, dir, Options{})
	defer mustClose(t, s)
	wantNoPayload(t, s, 1, 1)
	mustCommit(t, s, &Batch{Payloads: []Payload{bodyAt(1, 1, 3)}})
	wantPayload(t, s, bodyAt(1, 1, 3))
	checkClean(t, s)
	overflow(t, s, 1)
	wantPayload(t, s, bodyAt(1, 1, 3))
	checkClean(t, s)
}

// TestPayloadsOnlyInBucket: a file from before they were in rows is read, and goes on.
func TestPayloadsOnlyInBucket(t *testing.T) {
	s := openTemp(t, Options{})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1")})
	old, kept := bodyAt(1, 5, 10), bodyAt(1, 6, 11)
	for _, p := range []Payload{old, kept} {
		must.Do(t, s.db.Update(put(bucketPayload, appendPayloadKey(nil, 1, p.Digest),
			appendPayload(nil, &p))))
		wantPayload(t, s, p)
	}
	checkClean(t, s)
	mustCommit(t, s, &Batch{Payloads: []Payload{bodyAt(1, 5, 20)}})
	wantPayload(t, s, bodyAt(1, 5, 20))
	wantPayload(t, s, kept)
}

// TestPayloadsAreBounded: a full set of digests evicts its oldest body for a new one, and nothing
// else.
func TestPayloadsAreBounded(t *testing.T) {
	s := openTemp(t, Options{})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1", "http://b.test/1")})
	const set = 5 << (64 - payloadSetBits)
	payload := func(host HostID, digest uint64, age int) Payload {
		return Payload{Host: host, Digest: digest, At: time.Unix(1e9-int64(age), 0)}
	}
	others := []Payload{payload(1, set-1, 9999), payload(1, set+1<<(64-payloadSetBits), 9999), payload(2, set, 9999)}
	b := &Batch{Payloads: others}
	for i := range payloadsOfSet {
		// number 0 is the boltfile.Newest
		b.Payloads = append(b.Payloads, payload(1, set+uint64(i), (i*7)%payloadsOfSet))
	}
	mustCommit(t, s, b)
	overflow(t, s, 1)
	has := func(p Payload) bool {
		_, ok, err := s.Payload(p.Host, p.Digest)
		must.Do(t, err)
		return ok
	}
	mustCommit(t, s, &Batch{Payloads: []Payload{payload(1, set+3, 0)}}) // known: only its time is new
	overflow(t, s, 1)
	for i := range 10 {
		mustCommit(t, s, &Batch{Payloads: []Payload{payload(1, set+1000+uint64(i), -1)}})
	}
	for _, p := range b.Payloads {
		must.True(t, has(p), "body %x is forgotten, and there was room", p.Digest)
	}
	overflow(t, s, 1)
	for i, p := range b.Payloads {
		age := 1e9 - p.At.Unix()
		if i == len(others)+3 {
			age = 0
		}
		assert.Not(t, has(p), i >= len(others) && age >= payloadsOfSet-10, "body", p.Digest, "of age", age, "there is")
	}
	for _, p := range others {
		assert.True(t, has(p), "body %x of another set is forgotten", p.Digest)
	}
}

// TestPayloadsDamaged: a damaged part of a row is refused.
func TestPayloadsDamaged(t *testing.T) {
	first, second := bodyAt(1, 5, 1), bodyAt(1, 6, 1)
	good := recentItems(&first, &second).append(nil)
	if d := wire.NewDecoder(append(bytes.Clone(good), "rest"...)); !bytes.Equal(decodeRecentPayloads(&d), good[1:]) ||
		!d.OK() || string(d.Rest()) != "rest" {
		t.Fatalf("what is good is bad, or %q is left", d.Rest())
	}
	many := make(recentPayloads, (maxRecentPayloads+1)*payloadItemSize)
	for n := range maxRecentPayloads + 1 {
		many[n*payloadItemSize] = byte(n)
	}
	for name, b := range map[string][]byte{
		"none":         {0},
		"nothing":      {},
		"cut":          good[:len(good)-1],
		"half":         good[:len(good)-payloadItemSize],
		"255":          slices.Concat([]byte{255}, good[1:]),
		"too many":     many.append(nil),
		"twice":        recentItems(&first, &first).append(nil),
		"out of order": recentItems(&second, &first).append(nil),
	} {
		d := wire.NewDecoder(b)
		r := decodeRecentPayloads(&d)
		assert.True(t, !d.OK() && r == nil, "%s: taken as %x", name, r)
	}

	s := mustOpen(t, t.TempDir(), Options{})
	defer mustClose(t, s)
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1")})
	must.Do(t, s.db.Update(editRow(func(r *hostRow) { r.payloads = recentItems(&second, &first) })))
	_, _, err := s.Payload(1, 5)
	assert.True(t, errors.Is(err, ErrCorrupt), "a body in a damaged row: %v", err)
	assert.Fails(s.Commit(&Batch{Payloads: []Payload{first}}))(t, ErrCorrupt, "commit to a damaged row")
}

// TestConcurrentPayload: a payload that moves from the row to the bucket can be read all the time.
func TestConcurrentPayload(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1"), Payloads: []Payload{bodyAt(1, 5, 1)}})
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					wantPayload(t, s, bodyAt(1, 5, 1))
				}
			}
		})
	}
	for range 50 {
		overflow(t, s, 1)
		mustCommit(t, s, &Batch{Payloads: []Payload{bodyAt(1, 5, 1)}})
	}
	close(done)
	readers.Wait()
}

// pagesWritten counts the pages that transactions allocated.
func pagesWritten(s *Store) int64 {
	stats := s.db.Bolt.Stats()
	return stats.TxStats.GetPageCount()
}

// TestPayloadsCostFewPages: commits of outcomes write more pages with payloads than without, but
// not a page for each of them.
func TestPayloadsCostFewPages(t *testing.T) {
	const hosts, pages, each = 32, 128, 64
	written := func(payloads bool) int64 {
		s := openTemp(t, Options{NoSync: true})
		var b Batch
		for host := range hosts {
			b.Found = append(b.Found, found(t, s, numbered(hostName(host+1), 0, pages)...)...)
		}
		mustCommit(t, s, &b)
		var before int64
		for n := 0; n < hosts*pages; n += each {
			b = Batch{}
			for i := n; i < n+each; i++ {
				p := Payload{Host: HostID(i%hosts + 1), Digest: uint64(i+1) * 0x9e3779b97f4a7c15,
					Ordinal: uint32(i / hosts), At: someTime}
				b.Done = append(b.Done, Done{Host: p.Host, Ordinal: p.Ordinal, Outcome: Outcome{State: Fetched,
					At: someTime, Digest: p.Digest}})
				if payloads {
					b.Payloads = append(b.Payloads, p)
				}
			}
			if n == hosts*pages/2 {
				before = pagesWritten(s)
			}
			mustCommit(t, s, &b)
		}
		return pagesWritten(s) - before
	}
	without, with := written(false), written(true)
	assert.AtMost(t, with, without+hosts*pages/2/3, hosts*pages/2, "outcomes with payloads took pages", without,
		"without")
}
