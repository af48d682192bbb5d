package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
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

// eraseNames erases a set of names from a store, which it closes, and returns what that has counted.
func eraseNames(t tester, s *Store, names weburl.Names) Erased {
	t.Helper()
	e, err := s.NewErasure(names)
	must.Do(t, err)
	want, err := s.Count(context.Background(), e)
	must.Do(t, err)
	calls := 0
	err = s.Erase(context.Background(), e, func(got Erased) error {
		if calls++; got != want {
			t.Fatalf("%+v were erased, %+v counted", got, want)
		}
		return nil
	})
	must.True(t, err == nil && calls == 1, "%d calls: %v", calls, err)
	mustClose(t, s)
	return want
}

// erase erases one host, or all hosts of a domain, from a store and its model.
func (d *driver) erase(t *rapid.T) {
	names := weburl.Names{Name: hostName(rapid.IntRange(0, 4).Draw(t, "host"))}
	if rapid.IntRange(0, 9).Draw(t, "domain") == 0 {
		names = weburl.Names{Name: "example", Below: true}
	}
	kept := rowsOfOthers(t, d.store, names)
	eraseNames(t, d.store, names)
	d.model.erase(names)
	d.open(t)
	checkClean(t, d.store)
	d.compare(t)
	must.True(t, maps.Equal(rowsOfOthers(t, d.store, names), kept), "rows of other hosts have changed")
	must.True(t, !slices.ContainsFunc(namesIn(readFile(t, d.store.Path())), names.Has), "the file still has %s",
		names.Name)
}

// namesIn returns the hosts of the model's that raw bytes name in any form.
func namesIn(raw []byte) (names []string) {
	for n := range 12 {
		for _, form := range []string{hostName(n), weburl.ReverseHost(hostName(n))} {
			if (weburl.Names{Name: form, Below: true}).In(raw) {
				names = append(names, hostName(n))
			}
		}
	}
	return names
}

// rowsOfOthers returns all rows that belong to no host of a set, except those that refer to one.
func rowsOfOthers(t tester, s *Store, names weburl.Names) map[string]string {
	t.Helper()
	e, err := s.NewErasure(names)
	must.Do(t, err)
	rows := make(map[string]string)
	err = s.db.View(func(tx *txn) error {
		for _, name := range [][]byte{bucketURL, bucketSeen, bucketState, bucketDue, bucketRecrawl, bucketPayload,
			bucketMetadata} {
			b := tx.Bucket(name)
			if b == nil {
				continue
			}
			if err := b.Each(func(k, v []byte) error {
				if _, erased := e.Hosts[hostOfKey(k)]; erased {
					return nil
				}
				if string(name) == string(bucketURL) { // references are the model's part
					if v, err = e.unlink(v, hostOfKey(k)); err != nil {
						return err
					}
				}
				rows[string(name)+" "+string(k)] = string(v)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	must.Do(t, err)
	return rows
}

func (m *model) erase(names weburl.Names) {
	erased := make(map[HostID]bool)
	for i, name := range m.names {
		id := HostID(i + 1)
		if !names.Has(name) {
			continue
		}
		erased[id] = true
		delete(m.ids, name)
		m.names[i] = erasedName(id)
		m.hosts[i] = newModelHost(m.names[i])
		m.ids[m.names[i]] = id
	}
	for _, h := range m.hosts {
		for i := range h.urls {
			if u := &h.urls[i]; erased[u.ViaHost] {
				u.ViaHost, u.ViaOrdinal = NoHost, 0
			}
		}
	}
	maps.DeleteFunc(m.policies, func(o weburl.Origin, _ string) bool { return names.Has(o.Host) })
	maps.DeleteFunc(m.seeds, func(u, _ string) bool { return names.HasURL(u) })
}

// TestErase: what an erasure of the opaque values of others keeps, changes and removes; an id is never
// given again; and interrupted attempts leave nothing.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	far := found(t, s, "http://c.test/1")[0]
	b := Batch{Found: append(found(t, s, "http://a.test/1", "http://b.test/1", "http://www.b.test/1"), far)}
	mustCommit(t, s, &b)
	origin := func(host string) weburl.Origin { return weburl.Origin{Scheme: "http", Host: host, Port: 80} }
	far.URL, far.ViaHost, far.ViaOrdinal = parse(t, "http://c.test/2"), 2, 0
	far.Fingerprint = s.Fingerprint(far.URL)
	mustCommit(t, s, &Batch{
		Found: []Found{far}, Seeds: []SeedRow{{"http://b.test/1", []byte{}}, {"http://a.test/1", []byte{}}},
		Policies: []Policy{{origin("a.test"), []byte("a")}, {origin("b.test"), []byte("b")}, {origin("c.test"),
			[]byte("b.test")}},
		RobotsHistory: []Policy{{origin("b.test"), []byte("b")}, {origin("c.test"), []byte("x")}},
		Marks:         map[string][]byte{"one": []byte("http://b.test/"), "two": []byte("2"), "none": {}},
		Refused: []Refused{
			{Host: "a.test", Reason: TrapDepth, URL: parse(t, "http://b.test/deep")},
			{Host: "a.test", Reason: TrapDepth, URL: parse(t, "http://a.test/deep")},
			{Host: "b.test", Reason: TrapDepth, URL: parse(t, "http://b.test/deep")},
		},
	})
	for _, left := range []string{".erase", ".compact", ".upgrade", ".snapshot"} {
		must.Do(t, os.WriteFile(s.Path()+left, []byte("b.test"), 0o600))
	}
	names := weburl.Names{Name: "b.test", Below: true}
	e, err := s.NewErasure(names)
	must.True(t, err == nil && len(e.Hosts) == 2, "%v: %v", e.Hosts, err)
	e.Policy = func(record []byte) []byte {
		if names.In(record) {
			return nil
		}
		return record
	}
	e.History = func([]byte) []byte { return []byte("y") }
	e.Marks = func(marks map[string][]byte) {
		delete(marks, "one")
		marks["three"] = []byte("3")
	}
	want := Erased{Hosts: 2, URLs: 2, Robots: 1, History: 1, Seeds: 1, References: 1, Mentions: 4}
	stop := errors.New("stop")
	if err := s.Erase(context.Background(), e, func(Erased) error { return stop }); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	checkClean(t, s)
	files, _ := os.ReadDir(dir)
	assert.True(t, len(files) == 1, "%d files", len(files))
	ended, end := context.WithCancel(context.Background())
	end()
	assert.Is(t, s.Erase(ended, e, nil), context.Canceled, "an erasure that is interrupted")
	must.Do(t, s.Erase(context.Background(), e, func(got Erased) error {
		assert.Equal(t, got, want, "were erased")
		return nil
	}))
	mustClose(t, s)
	if raw := readFile(t, filepath.Join(dir, FileName)); bytes.Contains(raw, []byte("b.test")) || bytes.Contains(raw,
		[]byte("test.b")) {
		t.Error("the file still has the name")
	}
	after := mustOpen(t, dir, Options{})
	defer mustClose(t, after)
	checkClean(t, after)
	marks, err := after.Marks("")
	assert.True(t, err == nil && fmt.Sprint(marks) == "map[none:[] three:[51] two:[50]]", "marks are %v: %v", marks,
		err)
	history, err := after.RobotsHistory(origin("c.test"))
	assert.True(t, err == nil && string(history) == "y", "history is %q: %v", history, err)
	traps, err := after.Traps(1)
	assert.True(t, err == nil && len(traps) == 1 && traps[0].Count == 2 &&
		slices.Equal(traps[0].Samples, []string{"http://a.test/deep"}), "traps are %+v: %v", traps, err)
	mustCommit(t, after, &Batch{Found: found(t, after, "http://b.test/again")})
	if h, err := after.HostByName("b.test"); err != nil || h.ID != 5 || h.Tail != 1 {
		t.Errorf("found again it is %+v: %v", h, err)
	}
	if h, err := after.HostByID(2); err != nil || h.Name != "<erased-2>" || h.Tail != 0 {
		t.Errorf("the row that is left is %+v: %v", h, err)
	}
	checkClean(t, after)
}

// TestEraseKnowsAllBuckets: an erasure refuses a database with a bucket that it does not know.
func TestEraseKnowsAllBuckets(t *testing.T) {
	s := openTemp(t, Options{})
	must.Do(t, s.db.Update(func(tx *txn) error {
		_, err := tx.MakeBucket([]byte("other"))
		return err
	}))
	e, err := s.NewErasure(weburl.Names{Name: "a.test"})
	if err == nil {
		err = s.Erase(context.Background(), e, func(Erased) error { return nil })
	}
	assert.True(t, err != nil && strings.Contains(err.Error(), "bucket other"), "%v", err)
}

// TestEraseOlder: a file of an older version becomes one of this version, since the rows that erased
// hosts leave are of this one.
func TestEraseOlder(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	mustCommit(t, s, &Batch{Found: found(t, s, "http://a.test/", "http://b.test/")})
	age(t, s)
	eraseNames(t, s, weburl.Names{Name: "a.test"})
	s = mustOpen(t, dir, Options{})
	defer mustClose(t, s)
	checkClean(t, s)
	must.Do(t, s.db.View(func(tx *txn) error {
		assert.Returns(fileVersion(tx.Bucket(bucketMeta)))(t, Version, "version")
		return nil
	}))
}
