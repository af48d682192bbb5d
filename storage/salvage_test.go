package storage

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/storage/internal/boltfile"
	"github.com/amble-crawler/amble/storage/internal/rowfile"
)

// salvageStore makes a database in which hosts have rows in all buckets, and returns its file.
func salvageStore(t *testing.T) (good []byte, want map[string]Head) {
	t.Helper()
	s := goldenStore(t)
	var b Batch
	for host := range 12 {
		for n := range 20 * (host % 5) {
			u := parse(t, fmt.Sprintf("https://h%d.test/page/%d?q=%d", host, n, n%3))
			b.Found = append(b.Found, Found{
				URL: u, Fingerprint: s.Fingerprint(u), Depth: uint16(n % 7), Priority: int8(n % 2),
				At: time.Unix(1e9, 0),
			})
		}
		b.Marks = map[string][]byte{"mark": {1}, "optout/host h1.test": []byte("{}")}
	}
	mustCommit(t, s, &b)
	var done Batch
	must.Get(s.Walk(t.Context(), Position{}, 0, func(l *Located) error {
		if l.Ordinal%3 == 0 && l.Last.State == Queued {
			done.Done = append(done.Done,
				Done{Host: l.Host.ID, Ordinal: l.Ordinal, Origin: l.Origin, Priority: l.Priority,
					Outcome: Outcome{State: Retrying, At: time.Unix(1e9, 0), Due: time.Unix(2e9, 0), Attempts: 1}})
		}
		return nil
	}))(t)
	mustCommit(t, s, &done)
	want = urlsOf(t, s)
	good = readFile(t, s.Path())
	need := must.Get(boltSize(bytes.NewReader(good)))(t)
	return good[:need], want
}

// urlsOf returns the URLs of a store with their outcomes.
func urlsOf(t *testing.T, s *Store) map[string]Head {
	t.Helper()
	all := make(map[string]Head)
	must.Get(s.Walk(t.Context(), Position{}, 0, func(l *Located) error {
		h := l.Head
		h.Ordinal, h.ViaHost, h.ViaOrdinal = 0, NoHost, 0
		all[l.URL().String()] = h
		return nil
	}))(t)
	return all
}

// salvaged salvages a file, and checks that the new database is sound and has nothing that the good one had not.
func salvaged(t *testing.T, bad []byte, want map[string]Head) (*Salvaged, map[string]Head) {
	t.Helper()
	report, got, _ := salvagedAs(t, bad, want, false)
	return report, got
}

// salvagedAs is salvaged; with older, rows may be those of earlier commits. It returns how many hosts that are known by
// name have lost their row, too.
func salvagedAs(t *testing.T, bad []byte, want map[string]Head, older bool) (*Salvaged, map[string]Head, int) {
	t.Helper()
	dir := memoryDir(t)
	path := filepath.Join(dir, "damaged", FileName)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o750))
	must.Do(t, os.WriteFile(path, bad, 0o600))
	var losses int
	lostRows := false  // and with them outcomes that nobody counts
	var named []string // of these hosts
	report := must.Get(Salvage(t.Context(), path, filepath.Join(dir, "new"), SalvageOptions{
		Damaged: func(l HostLoss) {
			if losses, lostRows = losses+1, lostRows || l.Row; l.Row && l.Host != "" {
				named = append(named, l.Host)
			}
		},
		Lost: func(string) []byte { return []byte{7} },
	}))(t)
	s := must.Get(Open(filepath.Join(dir, "new"), Options{ReadOnly: true}))(t)
	defer s.Close()
	must.Do(t, s.Check(t.Context(), func(f Finding) { t.Errorf("the new database: %s", f.Text) }))
	for _, name := range named {
		if h, err := s.HostByName(name); err != nil || !bytes.Equal(h.Politeness, []byte{7}) {
			t.Errorf("%s has lost its row, and has the politeness %x, %v", name, h.Politeness, err)
		}
	}
	got := urlsOf(t, s)
	outcomes := 0
	for u, h := range got {
		switch w, known := want[u]; {
		case !known:
			t.Errorf("%s was not there", u)
		case h != w && h.Last != (Outcome{}) && !older:
			t.Errorf("%s is %+v, was %+v", u, h, w)
		case h != w:
			outcomes++
		}
	}
	if lost := uint64(len(want) - len(got)); losses != report.Hosts || lost != report.URLs && !report.Uncounted ||
		lost > 0 && report.Whole() || uint64(outcomes) != report.Outcomes && !lostRows && !older {
		t.Errorf("%d of %d URLs, %d without their outcome: %+v", len(got), len(want), outcomes, report)
	}
	for _, name := range []string{"mark"} {
		v, err := s.Mark(name)
		assert.True(t, err == nil && len(v) <= 1, "mark %s is %x, %v", name, v, err)
	}
	marks, err := s.Marks("optout/")
	assert.True(t, err == nil && (len(marks) != 0 || report.Marks), "lost opt-outs are not reported: %v", err)
	return report, got, len(named)
}

// TestSalvageWhole: all of a database without damage is brought over.
func TestSalvageWhole(t *testing.T) {
	good, want := salvageStore(t)
	report, got := salvaged(t, good, want)
	assert.True(t, report.Whole() && maps.Equal(got, want), "%d of %d URLs, %+v", len(got), len(want), report)
}

// TestSalvageSmall: the rows of a small database are all in one page.
func TestSalvageSmall(t *testing.T) {
	s := must.Get(Open(t.TempDir(), Options{}))(t)
	defer s.Close()
	u := parse(t, "http://a.test/")
	mustCommit(t, s, &Batch{
		Found: []Found{{URL: u, Fingerprint: s.Fingerprint(u)}},
		Marks: map[string][]byte{"mark": {1}, "optout/host h1.test": []byte("{}")},
	})
	want := urlsOf(t, s)
	report, got := salvaged(t, readFile(t, s.Path()), want)
	assert.True(t, report.Whole() && maps.Equal(got, want), "%d of %d URLs, %+v", len(got), len(want), report)
}

// TestSalvageFlips: a flipped byte costs at most the rows that it is in, and is said.
func TestSalvageFlips(t *testing.T) { salvageFlips(t, 997, 0x41) }

// salvageFlips flips bits of one byte in each step of a database.
func salvageFlips(t *testing.T, step int, bits byte) {
	good, want := salvageStore(t)
	for at := 2 * 4096; at < len(good); at += step {
		report, got := salvaged(t, patched(good, at, []byte{good[at] ^ bits}), want)
		assert.True(t, len(got) >= len(want)-200 && (len(got) >= len(want) || !report.Whole()),
			"byte %d: %d of %d URLs, %+v", at, len(got), len(want), report)
		must.True(t, !t.Failed(), "byte %d", at)
	}
}

// TestSalvagePages: a page that is gone costs the rows that were in it. Below a branch nothing is lost.
func TestSalvagePages(t *testing.T) {
	good, want := salvageStore(t)
	branches := 0
	for at := 2 * 4096; at < len(good); at += 4096 {
		_, got := salvaged(t, patched(good, at, make([]byte, 4096)), want)
		if kind := good[at+8]; kind == boltfile.Branch {
			if branches++; len(got) < len(want) {
				t.Errorf("page %d, a branch: %d of %d URLs", at/4096, len(got), len(want))
			}
		}
		must.True(t, !t.Failed(), "page %d", at/4096)
	}
	assert.AtLeast(t, branches, 2, "branches were tried")
}

// TestSalvageWithoutFreelist: if the list of free pages is lost too, the rows below a branch that is gone cannot be
// told from those of earlier commits. No URL is lost all the same. A host whose own row may be such a one begins with
// the politeness of one that has lost it, and no robots record is taken.
func TestSalvageWithoutFreelist(t *testing.T) {
	good, want := salvageStore(t)
	m := boltfile.Newest(boltfile.Metas(bytes.NewReader(good)))
	listed := good
	good = patched(good, int(m.Freelist)*int(m.PageSize)+8, []byte{0xff})
	branches, hosts := 0, 0
	for at := 2 * 4096; at < len(good); at += 4096 {
		isBranch := good[at+8] == boltfile.Branch
		bad := patched(good, at, make([]byte, 4096))
		report, got, lost := salvagedAs(t, bad, want, true)
		_, _, certain := salvagedAs(t, patched(listed, at, make([]byte, 4096)), want, false)
		if hosts += certain; lost < certain {
			t.Errorf("page %d: %d hosts have lost their row, and %d if the list is there", at/4096, lost, certain)
		}
		assert.True(t, len(got) >= len(want) || !isBranch && !report.Whole(), "page %d: %d of %d URLs, %+v", at/4096,
			len(got), len(want), report)
		if isBranch {
			branches++
		}
		must.True(t, !t.Failed(), "page %d", at/4096)
	}
	assert.True(t, branches >= 2 && hosts >= 5, "%d branches were tried, and %d hosts have lost their row", branches,
		hosts)
}

// TestSalvageVersions: of the rows of unknown commits the latest counts, in whatever order they are found, and the URLs
// of a host whose row is an earlier one end with its last block.
func TestSalvageVersions(t *testing.T) {
	s := must.Get(Open(t.TempDir(), Options{}))(t)
	defer s.Close()
	keys := map[string][]byte{string(bucketHost): appendHostKey(nil, 1), string(bucketState): appendBlockKey(nil, 1, 0)}
	var versions []map[string][]byte
	for round := range 3 {
		var found, done Batch
		for n := range 50 {
			u := parse(t, fmt.Sprintf("https://a.test/%d/%d", round, n))
			found.Found = append(found.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
		}
		mustCommit(t, s, &found)
		at := someTime.Add(time.Duration(round) * time.Minute)
		done.Done = []Done{{Host: 1, Ordinal: uint32(round), Outcome: Outcome{State: Fetched, At: at}}}
		mustCommit(t, s, &done)
		rows := make(map[string][]byte)
		must.Do(t, s.db.View(func(tx *txn) error {
			for name, k := range keys {
				rows[name] = bytes.Clone(tx.Bucket([]byte(name)).Get(k))
			}
			return nil
		}))
		versions = append(versions, rows)
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		a := &salvage{old: make(map[HostID]bool), report: &Salvaged{Rows: make(map[string]int)}}
		err := writeDatabase(filepath.Join(t.TempDir(), "rows"), s.Path(), func(to *rowWriter) error {
			g := gatherer{salvage: a, rows: to, earlier: true, versions: make(map[string]time.Time)}
			for _, i := range order {
				for name, k := range keys {
					v := versions[i][name]
					sum := rowfile.SumOf(rowfile.SumSeed([]byte(name)), k, v)
					g.orphan(k, binary.BigEndian.AppendUint32(bytes.Clone(v), sum))
				}
			}
			for name, k := range keys {
				assert.True(t, bytes.Equal(g.rows.Tx.Bucket([]byte(name)).Get(k), versions[2][name]),
					"%v: the row of bucket %s is not the latest", order, name)
			}
			return g.err
		})
		assert.True(t, err == nil && a.old[1], "%v: %v, old: %v", order, err, a.old)
		must.Do(t, s.db.View(func(tx *txn) error {
			var r hostRow
			assert.True(t, r.decode(1, versions[0][string(bucketHost)]) && a.isOld(tx, &r) && r.next >= 128 &&
				r.next <= 150, "the URLs of the host end with %d", r.next)
			return nil
		}))
	}
}

// TestSalvageTruncated: a file that was cut short is read as far as it goes.
func TestSalvageTruncated(t *testing.T) {
	good, want := salvageStore(t)
	for at := 3 * 4096; at < len(good); at += 7 * 4096 {
		if report, got := salvaged(t, good[:at], want); report.Whole() && len(got) < len(want) {
			t.Errorf("%d bytes: %d of %d URLs, %+v", at, len(got), len(want), report)
		}
	}
}

// TestSalvageRefuses: nothing is written over, and what is no database, or that of a shard, is left alone.
func TestSalvageRefuses(t *testing.T) {
	good, _ := salvageStore(t)
	write := func(b []byte) string {
		path := filepath.Join(t.TempDir(), FileName)
		must.Do(t, os.WriteFile(path, b, 0o600))
		return path
	}
	assert.Fails(Salvage(t.Context(), write(good), filepath.Dir(write(good)), SalvageOptions{}))(t, os.ErrExist,
		"where a database")
	dir := t.TempDir()
	assert.Fails(Salvage(t.Context(), write(make([]byte, 9<<12)), dir, SalvageOptions{}))(t, ErrNotDatabase,
		"no database")
	s := goldenStore(t)
	must.Do(t, s.db.Update(func(tx *txn) error {
		return tx.Bucket(bucketMark).Put([]byte(markLog), LogPosition{Number: 1}.encode())
	}))
	assert.Fails(Salvage(t.Context(), write(readFile(t, s.Path())), dir, SalvageOptions{}))(t, ErrShard, "a shard")
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) <= 0, "%v is left, %v", left, err)
}

// TestSalvageOlder: a database without checksums is read as far as it can be decoded, whatever its bytes are.
func TestSalvageOlder(t *testing.T) {
	packed := must.Get(gzip.NewReader(bytes.NewReader(readFile(t, filepath.Join("testdata", "database-3.db.gz")))))(t)
	good := must.Get(io.ReadAll(packed))(t)
	for at := 2 * 4096; at < len(good); at += 7919 {
		dir := t.TempDir()
		path := filepath.Join(dir, FileName)
		must.Do(t, os.WriteFile(path, patched(good, at, []byte{good[at] ^ 0xff}), 0o600))
		if _, err := Salvage(t.Context(), path, filepath.Join(dir, "new"), SalvageOptions{}); err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		s, err := Open(filepath.Join(dir, "new"), Options{ReadOnly: true})
		must.Do(t, err, "byte", at)
		must.Do(t, s.Check(context.Background(), func(f Finding) { t.Errorf("byte %d: %s", at, f.Text) }), "byte", at)
		must.Do(t, s.Close())
	}
}

// TestEmptyLeaf: a page of a bucket without any rows is damage, since bbolt keeps none. Its rows are not gone as if
// they had never been there.
func TestEmptyLeaf(t *testing.T) {
	good, want := salvageStore(t)
	leaves, dir := 0, t.TempDir()
	for at := 2 * 4096; at < len(good); at += 4096 {
		if good[at+8] != boltfile.Leaf || binary.LittleEndian.Uint64(good[at:]) != uint64(at/4096) {
			continue
		}
		bad := patched(good, at+10, []byte{0, 0})
		must.Do(t, os.WriteFile(filepath.Join(dir, FileName), bad, 0o600))
		if _, err := checkFile(dir); !isDamaged(err) {
			continue // it was free
		}
		leaves++
		report, got := salvaged(t, bad, want)
		assert.True(t, !report.Whole() || len(got) >= len(want), "page %d without its rows: %+v", at/4096, report)
	}
	assert.AtLeast(t, leaves, 10, "leaves")
}

// TestSalvageLostRow: of a host whose row is lost, the URLs outside of the row are brought over, with their outcomes,
// and marks that name their ordinals follow.
func TestSalvageLostRow(t *testing.T) {
	s := must.Get(Open(t.TempDir(), Options{}))(t)
	var b Batch
	for n := range 150 {
		u := parse(t, fmt.Sprintf("https://a.test:8443/%d", n))
		b.Found = append(b.Found, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
	}
	b.Policies = []Policy{{Origin: parse(t, "https://a.test:8443/").Origin(), Record: []byte("r")}}
	b.Marks = map[string][]byte{"mark": {1}, "optout/host h1.test": []byte("{}"), "moves": {100}}
	mustCommit(t, s, &b)
	var done Batch
	for n := range uint32(100) {
		done.Done = append(done.Done, Done{Host: 1, Ordinal: n, Outcome: Outcome{State: Fetched, At: someTime}})
	}
	mustCommit(t, s, &done)
	want := urlsOf(t, s)
	if err := s.db.Update(func(tx *txn) error { // the row, and a block of URLs
		return errors.Join(tx.Bucket(bucketHost).Delete(appendHostKey(nil, 1)),
			tx.Bucket(bucketURL).Delete(appendBlockKey(nil, 1, 16)))
	}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	must.Do(t, s.Close())
	report := must.Get(Salvage(t.Context(), s.Path(), dir, SalvageOptions{
		Moved: func(name string, value []byte, to func(HostID, uint32) uint32) []byte {
			if name != "moves" {
				return value
			}
			return []byte{byte(to(1, uint32(value[0])))}
		},
	}))(t)
	again := must.Get(Open(dir, Options{ReadOnly: true}))(t)
	defer again.Close()
	must.Do(t, again.Check(t.Context(), func(f Finding) { t.Error(f.Text) }))
	got := urlsOf(t, again)
	for u, h := range got {
		if w := want[u]; h != w && h.Last != (Outcome{}) { // the last outcomes were in the row
			t.Errorf("%s is %+v, was %+v", u, h, w)
		}
	}
	assert.True(t, len(got) >= 64 && report.Hosts == 1, "%d URLs, %+v", len(got), report)
	v, err := again.Mark("moves")
	assert.True(t, err == nil && len(v) == 1 && v[0] == 84, "the mark is %v, %v", v, err)
}
