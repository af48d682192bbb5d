package storage

import (
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// TestPayload: what a commit says of bodies can be asked for afterwards, each of its host, and the last one counts.
func TestPayload(t *testing.T) {
	s := openTemp(t, Options{})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1", "http://a.test/2", "http://b.test/1")})
	payload := func(host HostID, digest uint64, mark byte, ordinal uint32) Payload {
		return Payload{Host: host, Digest: digest, SHA1: [20]byte{mark}, Ordinal: ordinal, At: time.Unix(1e9+int64(mark), 0)}
	}
	mustCommit(t, s, &Batch{Payloads: []Payload{payload(2, 7, 1, 0), payload(1, 7, 2, 0), payload(1, 5, 3, 0), payload(1, 7, 4, 1)}})
	for _, want := range []Payload{payload(1, 5, 3, 0), payload(1, 7, 4, 1), payload(2, 7, 1, 0)} {
		if got, ok, err := s.Payload(want.Host, want.Digest); got != want || !ok || err != nil {
			t.Errorf("got %+v %t %v, want %+v", got, ok, err, want)
		}
	}
	if got, ok, err := s.Payload(2, 5); ok || err != nil {
		t.Errorf("a body that nobody has: %+v, %v", got, err)
	}
	if texts := findings(t, s); len(texts) > 0 {
		t.Errorf("check finds %q", texts)
	}
}

// TestPayloadInOlderFile: a file that was made before there were payloads has none, and takes them.
func TestPayloadInOlderFile(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/1")})
	if err := s.db.Update(func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketPayload) }); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = mustOpen(t, dir, Options{})
	defer mustClose(t, s)
	if _, ok, err := s.Payload(1, 1); ok || err != nil {
		t.Errorf("there is one: %v", err)
	}
	mustCommit(t, s, &Batch{Payloads: []Payload{{Host: 1, Digest: 1}}})
	if _, ok, err := s.Payload(1, 1); !ok || err != nil {
		t.Errorf("there is none: %v", err)
	}
	if texts := findings(t, s); len(texts) > 0 {
		t.Errorf("check finds %q", texts)
	}
}

// TestPayloadsAreBounded: a set of digests that is full forgets its oldest body for a new one, and nothing else.
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
		b.Payloads = append(b.Payloads, payload(1, set+uint64(i), (i*7)%payloadsOfSet)) // number 0 is the newest
	}
	mustCommit(t, s, b)
	has := func(p Payload) bool {
		_, ok, err := s.Payload(p.Host, p.Digest)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	mustCommit(t, s, &Batch{Payloads: []Payload{payload(1, set+3, 0)}}) // known: only its time is new
	for _, p := range b.Payloads {
		if !has(p) {
			t.Fatalf("body %x is forgotten, and there was room", p.Digest)
		}
	}
	for i := range 10 {
		mustCommit(t, s, &Batch{Payloads: []Payload{payload(1, set+1000+uint64(i), -1)}})
	}
	for i, p := range b.Payloads {
		age := 1e9 - p.At.Unix()
		if i == len(others)+3 {
			age = 0
		}
		if old := i >= len(others) && age >= payloadsOfSet-10; has(p) == old {
			t.Errorf("body %x of age %d: there is %v", p.Digest, age, !old)
		}
	}
	for _, p := range others {
		if !has(p) {
			t.Errorf("body %x of another set is forgotten", p.Digest)
		}
	}
	if texts := findings(t, s); len(texts) > 0 {
		t.Errorf("check finds %q", texts)
	}
}
