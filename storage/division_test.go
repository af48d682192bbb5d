package storage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// TestDivision divides random databases into parts, makes one of the parts again, and compares all that
// is known. What a part knows of its hosts has to be what the whole knows.
func TestDivision(t *testing.T) {
	tries(t, 25)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		d := &driver{model: newModel()}
		var err error
		d.dir, err = os.MkdirTemp(dir, "")
		must.True(t, err == nil, "%v", err)
		defer os.RemoveAll(d.dir)
		d.open(t)
		defer func() { d.store.Close() }()
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			d.commit(t)
		}
		if rapid.Bool().Draw(t, "age") && !d.model.isNewer() {
			age(t, d.store)
		}
		mustCommit(t, d.store, &Batch{Marks: map[string][]byte{MarkOutput: {1}}})
		parts := rapid.IntRange(1, 4).Draw(t, "parts")
		d.divide(t, parts)
	})
}

// partOf is the part of a host in the tests.
func partOf(host string, parts int) (n int) {
	for _, b := range []byte(host) {
		n += int(b)
	}
	return n % parts
}

func (d *driver) divide(t *rapid.T, parts int) {
	of := func(host string) int { return partOf(weburl.RegistrableDomain(host), parts) }
	want := strings.Join(dump(t, d.store, of), "")
	division := must.Get(d.store.Divide(t.Context(), parts, of))(t)
	marks := must.Get(d.store.Marks(""))(t)
	var lines []string
	var again []*Division
	for n := range parts {
		dir := filepath.Join(d.dir, fmt.Sprint("part", n))
		must.Do(t, os.Mkdir(dir, 0o750))
		counters := must.Get(division.Write(t.Context(), filepath.Join(dir, FileName),
			Part{Number: n, Log: LogPosition{Number: 1}, Marks: marks}))(t)
		s := mustOpen(t, dir, Options{ReadOnly: true, MapBytes: 1 << 20})
		defer s.Close()
		checkClean(t, s)
		if at, err := s.LogPosition(); s.Counters() != counters || at != (LogPosition{Number: 1}) || err != nil {
			t.Fatalf("counters are %+v, want %+v; %v, %v", s.Counters(), counters, at, err)
		}
		lines = append(lines, dump(t, s, of)...)
		one := must.Get(s.Divide(t.Context(), 1, func(string) int { return 0 }))(t)
		again = append(again, one)
	}
	slices.Sort(lines)
	got := strings.Join(slices.Compact(lines), "")
	must.True(t, got == want, "the parts have\n%s\nthe whole\n%s", got, want)
	dir := filepath.Join(d.dir, "whole")
	must.Do(t, os.Mkdir(dir, 0o750))
	must.Get(NewUnion(again).Write(t.Context(), filepath.Join(dir, FileName), d.store.path, marks))(t)
	s := mustOpen(t, dir, Options{NoSync: true, MapBytes: 1 << 20})
	defer s.Close()
	checkClean(t, s)
	if got := strings.Join(dump(t, s, of), ""); got != want || s.Counters() != d.store.Counters() {
		t.Fatalf("the whole has\n%s\nafter it was divided\n%s", want, got)
	}
	mustCommit(t, s, &Batch{Found: found(t, s, "http://new.test/", "http://new.test/")})
	checkClean(t, s)
}

// dump returns all that a database knows, as sorted lines without ids of hosts. A page that is of another
// part than a URL is not named.
func dump(t tester, s *Store, part func(host string) int) (lines []string) {
	t.Helper()
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format+"\n", args...)) }
	err := s.db.View(func(tx *txn) error {
		for id := HostID(1); uint64(id) <= s.Counters().Hosts; id++ {
			rd := reader{tx: tx}
			if err := getRow(tx, id, &rd.row); err != nil {
				return err
			}
			dumpHost(t, tx, &rd, s.names(t), part, add)
		}
		for _, name := range [][]byte{bucketRobots, bucketRobotsHistory, bucketScope, bucketMark} {
			if b := tx.Bucket(name); b != nil {
				_ = b.Each(func(k, v []byte) error {
					if !isLocal(string(k)) && string(k) != markLog {
						add("%s %s %x", name, k, v)
					}
					return nil
				})
			}
		}
		return nil
	})
	must.Do(t, err)
	slices.Sort(lines)
	return lines
}

func (s *Store) names(t tester) (names []string) {
	must.Do(t, s.Hosts(func(h *Host) error { names = append(names, h.Name); return nil }))
	return names
}

func dumpHost(t tester, tx *txn, rd *reader, names []string, part func(string) int, add func(string, ...any)) {
	r := rd.row
	name := string(r.name)
	queries := slices.Clone(r.queries)
	add("%s %d-%d spilled %d states %v %d requests %d %d politeness %x origins %+v plain %d queries %v digests %v "+
		"site %x errors %v payloads %x wall %x", name, r.first, r.next, r.spilled, r.counts, r.stateTop,
		r.requests, r.bytes,
		r.politeness, r.origins, r.plain, queries, r.digests, r.site, r.errors, r.payloads, r.wall)
	for n := r.first; n < r.next; n++ {
		e, err := rd.entry(n)
		o, err2 := rd.outcome(n)
		must.True(t, err == nil && err2 == nil, "%v, %v", err, err2)
		via := ""
		if e.ViaHost != NoHost && int(e.ViaHost) <= len(names) && part(names[e.ViaHost-1]) == part(name) {
			via = fmt.Sprint(names[e.ViaHost-1], e.ViaOrdinal)
		}
		e.ViaHost, e.ViaOrdinal = NoHost, 0
		add("%s %+v %+v via %s", name, e, o, via)
	}
	for _, bucket := range [][]byte{bucketState, bucketSeen, bucketDue, bucketRecrawl, bucketTrap, bucketPayload,
		bucketMetadata} {
		b := tx.Bucket(bucket)
		if b == nil {
			continue
		}
		c := b.Cursor()
		for k, v := c.Seek(appendHostKey(nil, r.id)); bytes.HasPrefix(k, appendHostKey(nil, r.id)); k, v = c.Next() {
			add("%s %s %x %x", name, bucket, k[hostKeySize:], v)
		}
	}
}

// TestUnionOfStrangers: databases that were made apart have different secrets. In their union all URLs are
// found again, and the queries of a path are counted on, if some are left.
func TestUnionOfStrangers(t *testing.T) {
	var all []*Division
	for n, host := range []string{"a.test", "b.test", "elsewhere.test"} {
		s := mustOpen(t, t.TempDir(), Options{MaxQueries: 100})
		defer mustClose(t, s)
		texts := append([]string{fmt.Sprintf("http://%s/gone?1", host)}, numbered(host, 0, 300)...)
		texts = append(texts, fmt.Sprintf("http://%s/gone", host))
		for q := range 60 {
			texts = append(texts, fmt.Sprintf("http://%s/list?page=%d", host, q))
		}
		mustCommit(t, s, &Batch{Found: found(t, s, texts...)})
		mustCommit(t, s, &Batch{Purges: []Purge{{Host: 1, Below: 1}}})
		d, err := s.Divide(t.Context(), 2, func(host string) int { return min(1, len(host)/10) })
		must.True(t, err == nil && n <= 2, "%v", err)
		all = append(all, d)
	}
	dir := t.TempDir()
	u := NewUnion(all)
	counters, err := u.Write(t.Context(), filepath.Join(dir, FileName), all[0].store.path, nil)
	must.True(t, err == nil && counters.Hosts == 2 && counters.URLs == 722, "%+v, %v", counters, err)
	id, ok := u.Host(1, 1)
	assert.True(t, id == 2 && ok, "b.test has id %d, %t", id, ok)
	if _, ok := u.Host(2, 1); ok {
		t.Error("elsewhere.test is in the union")
	}
	s := mustOpen(t, dir, Options{MaxQueries: 61})
	defer mustClose(t, s)
	checkClean(t, s)
	var r hostRow
	err = s.db.View(func(tx *txn) error { return getRow(tx, 2, &r) }) // it has the secret of the other
	assert.True(t, err == nil && len(r.queries) == 1 && r.queries[0].count == 60,
		"the queries are %v, %v; want those of one path, the other has none any more", r.queries, err)
	for _, host := range []string{"a.test", "b.test"} {
		again := found(t, s, append(numbered(host, 0, 300), fmt.Sprintf("http://%s/list?page=x", host),
			fmt.Sprintf("http://%s/list?page=y", host))...)
		r := mustCommit(t, s, &Batch{Found: again})
		assert.True(t, r.Added == 1 && r.TrappedBy[TrapQueries] == 1, "%s: %+v", host, r)
	}
}

// TestDivisionPositions: a position in the whole is the position behind the same URLs in each part.
func TestDivisionPositions(t *testing.T) {
	s := openTemp(t, Options{})
	mustCommit(t, s,
		&Batch{Found: found(t, s, "http://a1.test/", "http://b2.test/", "http://c1.test/", "http://d2.test/")})
	d := must.Get(s.Divide(t.Context(), 3, func(host string) int { return int(host[1] - '1') }))(t)
	for _, c := range []struct {
		part     int
		at, want string
	}{
		{0, "0.0", "1.0"}, {0, "1.5", "1.5"}, {0, "2.5", "2.0"}, {0, "3.1", "2.1"}, {0, "4.0", "3.0"},
		{1, "1.5", "1.0"}, {1, "2.5", "1.5"}, {1, "9.0", "3.0"}, {2, "1.1", "1.0"},
	} {
		at, err := ParsePosition(c.at)
		if got := d.Position(c.part, at); err != nil || got.String() != c.want {
			t.Errorf("%s is %s in part %d, want %s", c.at, got, c.part, c.want)
		}
	}
}
