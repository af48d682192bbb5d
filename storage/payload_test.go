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
