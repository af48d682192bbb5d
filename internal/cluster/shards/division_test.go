package shards

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// TestDivisionMarks: what marks say of a host is in the part of the host, under its id there. Walks go on in all
// parts behind what they have seen, and what is about the whole crawl is in all parts.
func TestDivisionMarks(t *testing.T) {
	dir := t.TempDir()
	s := openTestStore(t, dir)
	commitBatch(t, s,
		storage.Batch{Ensure: []string{"a.test", "b.test", "aa.test", "bb.test"}, Marks: map[string][]byte{
			"drop/3": {1}, "crash/2": []byte("v"), "recheck/4/7": {2}, "limit/3": []byte("5"),
			"tdm/http://bb.test": []byte("[]"),
			"deaths":             []byte("1 page http://a.test/x\n2 robots.txt http://bb.test\n"),
			"exclude":            []byte("3.9"),
			"retry/1":            []byte(`{"selection":{"states":4},"host":4,"ordinal":2,"back":1}`),
			"retry/2":            []byte(`{"selection":{"host":"a.test"},"host":1,"ordinal":3}`),
			"delete-all/7":       []byte(`{"before":7,"host":2}`), "optout/host x.test": []byte("{}"),
			"delay":  []byte("7"),
			"output": {1}, "in": storage.EncodeOffset(9), marks.Held: {1}, "ledger": storage.EncodeOffset(0),
			"other": {3}, "totals": []byte(`{"outside":5}`),
		}})
	held := must.Get(starts.Open(dir, boot.ID(), 0))(t)
	now := time.Now()
	must.Do(t, held.AppendWait(starts.Wait{Host: "bb.test", At: now, Wait: time.Hour}))
	must.Do(t, held.Close())
	must.Do(t, s.Close())
	o := crawl.DefaultOptions()
	o.DataDir = dir
	d := must.Get(openDivision(t.Context(), o, 2, func(host string) int { return int(host[0] - 'a') }))(t)
	defer d.close()
	all := []string{"delay=7", "other=\x03"}
	for part, want := range [][]string{
		{
			"drop/2=\x01", "limit/2=5", "deaths=1 page http://a.test/x\n", "exclude=2.9",
			`delete-all/7={"before":7,"host":2}`, `totals={"outside":5}`,
			`retry/1={"selection":{"states":4},"host":3,"back":1}`,
			`retry/2={"selection":{"host":"a.test"},"host":1,"ordinal":3}`,
		},
		{
			"crash/1=v", "recheck/2/7=\x02", "tdm/http://bb.test=[]", "deaths=2 robots.txt http://bb.test\n",
			"exclude=2.0",
			`delete-all/7={"before":7,"host":1}`, `retry/1={"selection":{"states":4},"host":2,"ordinal":2,"back":1}`,
		},
	} {
		path := filepath.Join(t.TempDir(), storage.FileName)
		must.Get(d.write(t.Context(), path, part, storage.LogPosition{Number: 1}))(t)
		of := openTestStore(t, filepath.Dir(path))
		marks := must.Get(of.Marks(""))(t)
		delete(marks, "log")
		var got []string
		for _, name := range slices.Sorted(maps.Keys(marks)) {
			got = append(got, name+"="+string(marks[name]))
		}
		want = append(want, all...)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("part %d has\n%s\nwant\n%s", part, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if part == 1 {
			checkHeld(t, of, "bb.test", now.Add(50*time.Minute))
		}
		must.Do(t, of.Close())
	}
}

// checkHeld checks that a host is left alone until a time at least.
func checkHeld(t *testing.T, s *storage.Store, host string, until time.Time) {
	t.Helper()
	h := must.Get(s.HostByName(host))(t)
	state := must.Get(politeness.DecodeState(h.Politeness))(t)
	o := politeness.DefaultOptions()
	if at := politeness.NewHost(&o, state, time.Now()).Ready(time.Now()); at.Before(until) {
		t.Errorf("%s may be requested at %v, want %v or later: its Retry-After was not committed", host, at, until)
	}
}

func openTestStore(t *testing.T, dir string) *storage.Store {
	t.Helper()
	return must.Get(storage.Open(dir, storage.Options{MapBytes: 1 << 20}))(t)
}

func commitBatch(t *testing.T, s *storage.Store, b storage.Batch) {
	t.Helper()
	must.Get(s.Commit(&b))(t)
}
