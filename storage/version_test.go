package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// writeRows makes a database file of rows as TestGolden prints them.
func writeRows(t *testing.T, dir, golden string) {
	t.Helper()
	db := must.Get(bolt.Open(filepath.Join(dir, FileName), 0o644, nil))(t)
	must.Do(t, db.Update(func(tx *bolt.Tx) error {
		var row []string
		for line := range strings.Lines(golden + "end\n") {
			if value, ok := strings.CutPrefix(line, "\t"); ok {
				row[1] += strings.TrimSpace(value)
				continue
			}
			if row != nil {
				bucket, key, _ := strings.Cut(row[0], " ")
				b, err := tx.CreateBucketIfNotExists([]byte(bucket))
				if err != nil {
					return err
				}
				k, _ := hex.DecodeString(key)
				v, _ := hex.DecodeString(row[1])
				if err := b.Put(k, v); err != nil {
					return err
				}
			}
			row = []string{strings.TrimSpace(line), ""}
		}
		return nil
	}))
	must.Do(t, db.Close())
}

// TestVersion1 opens a file of version 1 and reads it as it is. Opened to be written, the file becomes one
// of this version: rows that change are converted, the others get their checksums.
func TestVersion1(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, dir, string(readFile(t, filepath.Join("testdata", "golden-1.txt"))))
	before := readFile(t, filepath.Join(dir, FileName))
	s := mustOpen(t, dir, Options{ReadOnly: true})
	checkClean(t, s)
	readVersion1(t, s)
	mustClose(t, s)
	must.True(t, bytes.Equal(before, readFile(t, filepath.Join(dir, FileName))), "reading changed the file")

	s = mustOpen(t, dir, Options{MaxHostURLs: 70})
	defer func() { mustClose(t, s) }()
	checkClean(t, s)
	readVersion1(t, s)
	versions := rowVersions(t, s)
	must.True(t, versions == [3]uint32{6, 1, 1}, "versions of file and rows before the first commit: %d", versions)
	mustCommit(t, s, &Batch{Found: found(t, s, numbered("www.example.com", 60, 80)...)})
	assert.Equal(t, rowVersions(t, s), [3]uint32{6, 4, 1},
		"versions of file and rows after a commit that touches host 1")
	checkClean(t, s)
	traps, err := s.Traps(1)
	assert.True(t, err == nil && len(traps) == 1 && traps[0].Reason == TrapHostURLs && traps[0].Count == 10,
		"traps: %+v, %v", traps, err)
	readVersion1(t, s)
}

// TestVersion2 does the same with a file of version 2: recrawls are new in version 3.
func TestVersion2(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, dir, string(readFile(t, filepath.Join("testdata", "golden-2.txt"))))
	s := mustOpen(t, dir, Options{ReadOnly: true})
	checkClean(t, s)
	if h, err := s.Heads(HeadsRequest{Host: 1, Recrawls: 5, Now: someTime.Add(time.Hour)}); err != nil ||
		len(h.Recrawls) > 0 {
		t.Errorf("recrawls of version 2: %+v, %v", h.Recrawls, err)
	}
	mustClose(t, s)

	s = mustOpen(t, dir, Options{})
	defer func() { mustClose(t, s) }()
	recrawl := Outcome{State: Fetched, At: someTime, Due: someTime.Add(time.Minute), History: [8]byte{7}, Simhash: 9}
	r := mustCommit(t, s, &Batch{Done: []Done{{Host: 1, Ordinal: 5, Outcome: recrawl}}})
	if got := r.Hosts[0]; got.Recrawls != 1 || got.NextRecrawl != uint32(recrawl.Due.Unix()) || got.Due != 0 {
		t.Errorf("touched: %+v", got)
	}
	assert.Equal(t, rowVersions(t, s), [3]uint32{6, 4, 2},
		"versions of file and rows after a commit that touches host 1")
	checkClean(t, s)
	h, err := s.Heads(HeadsRequest{Host: 1, Recrawls: 5, Now: someTime.Add(time.Hour)})
	assert.True(t, err == nil && len(h.Recrawls) == 1 && h.Recrawls[0].Ordinal == 5 && h.Recrawls[0].Last.Simhash == 9,
		"recrawls: %+v, %v", h.Recrawls, err)
}

// TestVersion3 does the same with a file of version 3, in which no URL could be deleted and none had
// metadata.
func TestVersion3(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, dir, string(readFile(t, filepath.Join("testdata", "golden-3.txt"))))
	s := mustOpen(t, dir, Options{ReadOnly: true})
	checkClean(t, s)
	m, err := s.Metadata(1, 0)
	assert.True(t, m == nil && err == nil, "metadata of version 3: %v, %v", m, err)
	mustClose(t, s)

	s = mustOpen(t, dir, Options{})
	defer func() { mustClose(t, s) }()
	assert.Returns(s.PurgeRange(1, 0))(t, 1<<64-1, "range of fingerprints to clear ends at")
	before := s.Counters().URLs
	mustCommit(t, s, &Batch{Purges: []Purge{{Host: 1, Below: 20, To: 1<<64 - 1}}})
	if versions := rowVersions(t, s); versions != [3]uint32{6, 4, 3} || s.Counters().URLs != before-20 {
		t.Errorf("versions of file and rows after a purge of host 1: %d; %d URLs", versions, s.Counters().URLs)
	}
	checkClean(t, s)
}

// TestVersion4 does the same with a file of version 4, whose rows had no checksums. A copy that an
// interrupted start has left is in nobody's way.
func TestVersion4(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, dir, string(readFile(t, filepath.Join("testdata", "golden-4.txt"))))
	before := readFile(t, filepath.Join(dir, FileName))
	s := mustOpen(t, dir, Options{ReadOnly: true})
	checkClean(t, s)
	var rows, after bytes.Buffer
	must.Do(t, s.WriteRows(&rows))
	mustClose(t, s)
	must.True(t, bytes.Equal(before, readFile(t, filepath.Join(dir, FileName))), "reading changed the file")

	left := filepath.Join(dir, FileName+".upgrade")
	must.Do(t, os.WriteFile(left, []byte("left"), 0o600))
	s = mustOpen(t, dir, Options{})
	defer mustClose(t, s)
	assert.Fails(os.Stat(left))(t, fs.ErrNotExist, "the copy is still there")
	checkClean(t, s)
	must.Do(t, s.WriteRows(&after))
	want := strings.Replace(rows.String(), "76657273696f6e 00000004\n", "76657273696f6e 00000006\n", 1)
	want = strings.Replace(want, "meta 76", "meta 73756d73 00000006\nmeta 76", 1)
	assert.Equal(t, after.String(), want, "the rows are not the same")
	mustCommit(t, s, &Batch{Done: []Done{{Host: 1, Ordinal: 60, Outcome: Outcome{State: Fetched, At: someTime}}}})
	checkClean(t, s)
}

// TestVersion5: a file of version 5 gets the number of this version, and keeps its rows. They have no seeds, and its
// new ones do.
func TestVersion5(t *testing.T) {
	dir := t.TempDir()
	writeRows(t, dir, string(readFile(t, filepath.Join("testdata", "golden-5.txt"))))
	var before, after bytes.Buffer
	s := mustOpen(t, dir, Options{ReadOnly: true})
	must.Do(t, s.WriteRows(&before))
	seeds, err := s.Seeds()
	assert.True(t, err == nil && len(seeds) == 1 && len(seeds[0].Value) == 0, "seeds: %v, %v", seeds, err)
	mustClose(t, s)
	s = mustOpen(t, dir, Options{})
	defer mustClose(t, s)
	must.Do(t, s.WriteRows(&after))
	want := before.String()
	for _, row := range []string{"73756d73", "76657273696f6e"} {
		want = strings.Replace(want, "meta "+row+" 00000005\n", "meta "+row+" 00000006\n", 1)
	}
	assert.Equal(t, after.String(), want, "the rows are not the same")
	f := found(t, s, "http://new.example/from")
	f[0].From = SeedRef{ID: seedIDOf("http://a.example/"), Outside: 1}
	mustCommit(t, s, &Batch{Found: f})
	if head, _, err := s.Lookup(f[0].URL); err != nil || head.From != f[0].From {
		t.Errorf("stored as reached from %v, %v; want %v", head.From, err, f[0].From)
	}
	checkClean(t, s)
}

func readVersion1(t *testing.T, s *Store) {
	t.Helper()
	head, _, err := s.Lookup(parse(t, "http://[2001:db8::1]:8080/a?b=c"))
	assert.True(t, err == nil && head.Priority == -5 && head.Redirects == 3 && head.Last.State == Retrying,
		"URL of version 1: %+v, %v", head, err)
	h, err := s.Heads(HeadsRequest{Host: 2, Due: 5, Queued: 5, Now: someTime.Add(2 * time.Hour)})
	assert.True(t, err == nil && len(h.Due) == 1 && len(h.Queued) == 0, "heads of version 1: %+v, %v", h, err)
	if traps, err := s.Traps(2); err != nil || traps != nil {
		t.Errorf("traps of version 1: %+v, %v", traps, err)
	}
	if _, err := s.Stats(t.Context()); err != nil {
		t.Errorf("statistics of version 1: %v", err)
	}
}

// rowVersions returns the versions of the file and of the rows of hosts 1 and 2.
func rowVersions(t *testing.T, s *Store) (v [3]uint32) {
	t.Helper()
	must.Do(t, s.db.View(func(tx *txn) error {
		v[0] = binary.BigEndian.Uint32(tx.Bucket(bucketMeta).Get(metaVersion))
		for id := HostID(1); id <= 2; id++ {
			v[id] = uint32(tx.Bucket(bucketHost).Get(appendHostKey(nil, id))[0])
		}
		return nil
	}))
	return v
}

// TestVersion1Priorities: queued URLs of version 1 stay in the order of the cursor whatever their
// priority; later ones do not.
func TestVersion1Priorities(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{NoSync: true})
	defer func() { mustClose(t, s) }()
	b := Batch{Found: found(t, s, numbered("host.example", 0, 3)...)}
	b.Found[1].Priority = 7
	mustCommit(t, s, &b)
	age(t, s)
	checkClean(t, s)
	b = Batch{Found: found(t, s, numbered("host.example", 3, 6)...)}
	b.Found[1].Priority, b.Found[2].Priority = 7, 8
	want := HostChange{Host: 1, Tail: 6, Backlog: Backlog{Queued: 4, Due: 2, NextDue: 1}, URLs: 6}
	assert.Equal(t, mustCommit(t, s, &b).Hosts[0], want, "touched")
	checkClean(t, s)
	queued, due := headOrdinals(t, s)
	assert.True(t, queued == "0 1 2 3" && due == "5 4", "queued %s, due %s", queued, due)
	mustCommit(t, s, &Batch{Done: []Done{
		{Host: 1, Ordinal: 1, Priority: 7, Outcome: Outcome{State: Fetched, At: someTime}},
		{Host: 1, Ordinal: 4, Priority: 7, Outcome: Outcome{State: Fetched, At: someTime}},
	}})
	checkClean(t, s)
	if queued, due := headOrdinals(t, s); queued != "0 2 3" || due != "5" {
		t.Errorf("queued %s, due %s", queued, due)
	}
}

// age turns a file into one of version 1, which had no recrawls.
func age(t tester, s *Store) {
	t.Helper()
	var b Batch
	_, err := s.Walk(context.Background(), Position{}, 0, func(l *Located) error {
		if _, recrawl := l.Last.plan(); recrawl != 0 {
			l.Last.Due = time.Time{}
			b.Done = append(b.Done, Done{Host: l.Host.ID, Ordinal: l.Ordinal, Origin: l.Origin, Priority: l.Priority,
				Outcome: l.Last})
		}
		return nil
	})
	must.Do(t, err, "walk the file")
	mustCommit(t, s, &b)
	err = s.db.Update(func(tx *txn) error {
		var r hostRow
		for id := HostID(1); uint64(id) <= s.Counters().Hosts; id++ {
			if err := getRow(tx, id, &r); err != nil {
				return err
			}
			if err := forgetPriorities(tx, &r); err != nil {
				return err
			}
			if err := tx.Bucket(bucketHost).Put(appendHostKey(nil, id), rowVersion1(&r)); err != nil {
				return err
			}
		}
		for _, name := range [][]byte{bucketTrap, bucketRecrawl, bucketPayload, bucketMetadata} {
			if err := tx.Bolt.DeleteBucket(name); err != nil && !errors.Is(err, berrors.ErrBucketNotFound) {
				return err
			}
		}
		return withoutSums(tx, 1)
	})
	must.Do(t, err, "age the file")
	s.db.Summed = false
	must.Do(t, errors.Join(s.upgrade(), s.open(Options{NoSync: true, MapBytes: 1 << 20})), "bring the file over")
}

// withoutSums makes a file one of a version whose rows have no checksums.
func withoutSums(tx *txn, version uint32) error {
	err := tx.Buckets(func(_ []byte, b *bucket) error {
		rows := make(map[string][]byte)
		err := b.Each(func(k, v []byte) error {
			rows[string(k)] = bytes.Clone(v)
			return nil
		})
		for k, v := range rows {
			err = errors.Join(err, b.Bolt.Put([]byte(k), v))
		}
		return err
	})
	meta := tx.Bucket(bucketMeta)
	return errors.Join(err, meta.Delete(metaSums), meta.Put(metaVersion, binary.BigEndian.AppendUint32(nil, version)))
}

// forgetPriorities puts the queued URLs of all priorities behind the cursors.
func forgetPriorities(tx *txn, r *hostRow) error {
	c := tx.Bucket(bucketDue).Cursor()
	var keys [][]byte
	for k, _ := c.Seek(appendHostKey(nil, r.id)); k != nil && hostOfKey(k) == r.id; k, _ = c.Next() {
		if binary.BigEndian.Uint32(k[6:]) == dueAtOnce {
			keys = append(keys, bytes.Clone(k))
		}
	}
	for i := range r.origins {
		r.origins[i].cursor = 0
	}
	for _, k := range keys {
		if err := tx.Bucket(bucketDue).Delete(k); err != nil {
			return err
		}
		o := &r.origins[k[4]]
		o.Due, o.Queued = o.Due-1, o.Queued+1
	}
	w := hostWork{transaction: transaction{due: tx.Bucket(bucketDue)}}
	w.dueCursor = w.due.Cursor()
	for i := range r.origins {
		r.origins[i].NextDue = w.firstDue(r.id, uint8(i))
	}
	return nil
}

// rowVersion1 encodes a row as version 1 did: without recrawls and extras.
func rowVersion1(r *hostRow) []byte {
	old := *r
	old.plain, old.queries, old.digests, old.site, old.errors, old.payloads, old.wall, old.tail = 0, nil, nil, nil, nil,
		nil, nil, nil
	b := old.append(nil)
	b[0] = 1
	b = slices.Delete(b, 42, 46) // the ordinal of the first URL
	for i := range old.origins {
		at := 54 + 2 + len(old.name) + len(old.politeness) + 19*(i+1)
		b = slices.Delete(b, at, at+8)
	}
	return append(b[:len(b)-1], r.tail...)
}
