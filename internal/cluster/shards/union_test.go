package shards

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// heldHost has a Retry-After that was not committed.
const heldHost = "h0.test"

// TestHeavyUnion divides random databases among shards, joins these again, and compares what is known.
func TestHeavyUnion(t *testing.T) {
	tmp := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir := must.Get(os.MkdirTemp(tmp, ""))(t)
		defer os.RemoveAll(dir)
		o := crawl.DefaultOptions()
		o.DataDir, o.MinFree, o.Storage.NoSync, o.Storage.MapBytes = filepath.Join(dir, "before"), 0, true, 1<<20
		o.Archive.Dir = filepath.Join(dir, "output")
		drawDatabase(t, o.DataDir)
		want := dumpCrawl(t, o)
		parts := rapid.IntRange(1, 4).Draw(t, "parts")
		of := func(host string) int { return int(host[1]) % parts }
		d := must.Get(openDivision(t.Context(), o, parts, of))(t)
		defer d.close()
		u, whole := &union{}, o
		defer u.close()
		for part := range parts {
			at := filepath.Join(dir, fmt.Sprint(part))
			must.Do(t, os.Mkdir(at, 0o750))
			file := filepath.Join(at, storage.FileName)
			must.Get(d.write(t.Context(), file, part, storage.LogPosition{Number: 1}))(t)
			must.Get(u.add(t.Context(), at, nil, func(host string) bool { return of(host) == part }))(t)
		}
		optOuts := must.Get(d.optOuts())(t)
		whole.DataDir = filepath.Join(dir, "after")
		must.Do(t, os.Mkdir(whole.DataDir, 0o750))
		must.Do(t, u.write(t.Context(), whole, d.paused(), optOuts))
		got := dumpCrawl(t, whole)
		must.True(t, got == want, "the crawl has\n%s\nafter it was in a cluster\n%s", want, got)
		checkRestart(t, whole)
	})
}

// drawDatabase makes a random database.
func drawDatabase(t *rapid.T, dir string) {
	s := must.Get(storage.Open(dir, storage.Options{NoSync: true, MapBytes: 1 << 20}))(t)
	now := time.Unix(1_800_000_000, 0)
	var b storage.Batch
	for range rapid.IntRange(1, 60).Draw(t, "urls") {
		host, path := rapid.IntRange(0, 7).Draw(t, "host"), rapid.IntRange(0, 20).Draw(t, "path")
		u := must.Get(weburl.Parse(fmt.Sprintf("http://h%d.test/%d", host, path)))(t)
		b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now})
	}
	b.Ensure = []string{heldHost}
	b.Seeds = []storage.SeedRow{
		{URL: "http://h1.test/", Value: []byte{}}, {URL: "http://h6.test/moved", Value: []byte("{}")},
	}
	commit(t, s, &b)
	hosts := storage.HostID(s.Counters().Hosts)
	b = storage.Batch{Marks: map[string][]byte{
		"delay": []byte("7"), sweep.MarkSettings: []byte("{}"), "tdm/http://h1.test": []byte("[]"),
		marks.Deaths: []byte("1 page http://h0.test/1\n2 robots.txt http://h5.test\n"),
	}}
	if rapid.Bool().Draw(t, "paused") {
		b.Marks[marks.Paused], _ = now.MarshalBinary()
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "opt-outs") {
		e := fmt.Sprintf(`{"scope":"host","value":"out%d.test","at":"2026-01-02T03:04:05Z"}`, i)
		b.Marks[marks.OptOut(optout.ScopeHost, fmt.Sprintf("out%d.test", i))] = []byte(e)
	}
	for id := storage.HostID(1); id <= hosts; id++ {
		h := must.Get(s.HostByID(id))(t)
		for n := h.First; n < h.Tail; n++ {
			b.Done = append(b.Done, drawOutcome(t, id, n, now)...)
		}
		if rapid.Bool().Draw(t, "marks") {
			b.Marks[fmt.Sprintf("drop/%d", id)], b.Marks[sweep.CrashMark(id)] = []byte{1}, []byte("v")
			b.Marks[marks.OfLimit(id)], b.Marks[fmt.Sprintf("recheck/%d/7", id)] = []byte("5"), []byte{2}
		}
	}
	commit(t, s, &b)
	plan, err := emptyPlan()
	if err == nil {
		plan, err = recrawl.Of(plan, func(add func(recrawl.History, recrawl.Importance)) error {
			for id := storage.HostID(1); id <= hosts; id++ {
				if err := addPlanned(s, id, add); err != nil {
					return err
				}
			}
			return nil
		})
	}
	must.Do(t, err)
	b = storage.Batch{Marks: map[string][]byte{marks.Plan: plan, storage.MarkLedger: storage.EncodeOffset(0),
		marks.Sums: []byte(`{"deep":2,"types":{"a/b":{"responses":1,"bytes":3}}}`)}}
	commit(t, s, &b)
	ledger, err := starts.Open(dir, boot.ID(), 0)
	if err == nil {
		err = ledger.AppendWait(starts.Wait{Host: heldHost, At: time.Now(), Wait: time.Hour})
	}
	must.Do(t, errors.Join(err, ledger.Close(), s.Close()))
}

// drawOutcome draws the outcome of a URL, or none.
func drawOutcome(t *rapid.T, host storage.HostID, n uint32, now time.Time) []storage.Done {
	o := storage.Outcome{At: now.Add(time.Minute)}
	switch rapid.IntRange(0, 4).Draw(t, "outcome") {
	case 0:
		return nil
	case 1:
		o.State, o.Reason = storage.Failed, storage.ReasonCrash
	case 2:
		o.State, o.Due = storage.Retrying, now.Add(time.Hour)
	case 3:
		o.State, o.Status = storage.Fetched, 200
	default:
		o.State, o.Status = storage.Fetched, 200
		o.Due = now.Add(time.Duration(rapid.IntRange(1, 99).Draw(t, "due")) * time.Hour)
		o.History = recrawl.History{byte(rapid.IntRange(1, 9).Draw(t, "history"))}
	}
	return []storage.Done{{Host: host, Ordinal: n, Outcome: o}}
}

// dumpCrawl returns all that the database of a crawl knows of hosts and the crawl, without ids of hosts.
func dumpCrawl(t *rapid.T, o crawl.Options) string {
	s := must.Get(storage.Open(o.DataDir, storage.Options{NoSync: true, MapBytes: 1 << 20}))(t)
	defer s.Close()
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	names := make(map[storage.HostID]string)
	for id := storage.HostID(1); uint64(id) <= s.Counters().Hosts; id++ {
		h, err := s.HostByID(id)
		for at := h.First; err == nil && at < h.Tail; {
			at, err = s.URLs(id, at, 100, func(u storage.Head) { add("%s %+v", h.Name, u) })
		}
		must.Do(t, err)
		names[id], h.ID = h.Name, 0
		if h.Name == heldHost {
			h.Politeness = nil
		}
		add("host %+v", h)
	}
	seeds, err := s.Seeds()
	stored, err2 := s.Marks("")
	must.Do(t, errors.Join(err, err2))
	add("scope %v counters %+v", seeds, s.Counters())
	for name, value := range stored {
		id, ok := sweep.HostOfMark(name)
		if !ok {
			id, ok = marks.HostOfLimit(name)
		}
		switch name {
		case "log", marks.Held, storage.MarkLedger, sweep.MarkExclude:
			continue
		case marks.Deaths:
			deaths := bytes.SplitAfter(value, []byte("\n"))
			slices.SortFunc(deaths, bytes.Compare)
			value = bytes.Join(deaths, nil)
		case marks.Paused: // since when is not kept
			value = nil
		}
		if ok {
			name = strings.Replace(name, fmt.Sprint("/", id), "/"+names[id], 1)
		}
		add("mark %s %x", name, value)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// checkRestart checks that all hosts have a restart hold, and one what it has demanded; and that opt-outs are
// looked for in the queues.
func checkRestart(t *rapid.T, o crawl.Options) {
	s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true, MapBytes: 1 << 20}))(t)
	defer s.Close()
	stored := must.Get(s.Marks(""))(t)
	var held time.Time
	if err := held.UnmarshalBinary(stored[marks.Held]); err != nil || time.Since(held) > time.Minute {
		t.Errorf("hosts have a restart hold since %v, %v", held, err)
	}
	commanded, err := crawl.CommandedOptOuts(s)
	if sweeps := string(stored[sweep.MarkExclude]) == "0.0"; err != nil || sweeps != (len(commanded) > 0) {
		t.Errorf("%d opt-outs, and a sweep from %q, %v", len(commanded), stored[sweep.MarkExclude], err)
	}
	h := must.Get(s.HostByName(heldHost))(t)
	state := must.Get(politeness.DecodeState(h.Politeness))(t)
	limits := politeness.DefaultOptions()
	assert.AtLeast(t, time.Until(politeness.NewHost(&limits, state, time.Now()).Ready(time.Now())), 50*time.Minute,
		heldHost, "may be requested after its Retry-After was not committed")
}

func commit(t *rapid.T, s *storage.Store, b *storage.Batch) {
	must.Get(s.Commit(b))(t)
}

func emptyPlan() ([]byte, error) {
	p, err := recrawl.New(recrawl.DefaultOptions())
	if err != nil {
		return nil, err
	}
	return p.AppendBinary(nil)
}

// TestUnionMarks: retries of the whole crawl that shards have in common are one that begins again, those of a
// host go on; a deletion that is under way is refused.
func TestUnionMarks(t *testing.T) {
	u := &union{}
	defer u.close()
	add := func(host string, stored map[string][]byte) {
		t.Helper()
		dir := t.TempDir()
		s := openTestStore(t, dir)
		commitBatch(t, s, storage.Batch{Ensure: []string{"elsewhere.test", host}, Marks: stored})
		must.Do(t, s.Close())
		must.Get(u.add(t.Context(), dir, nil, func(h string) bool { return h == host }))(t)
	}
	write := func() (map[string][]byte, error) {
		o := crawl.DefaultOptions()
		o.DataDir = t.TempDir()
		err := u.write(t.Context(), o, false, nil)
		if err != nil {
			return nil, err
		}
		s := openTestStore(t, o.DataDir)
		defer s.Close()
		return s.Marks("")
	}
	add("a.test", map[string][]byte{
		"retry/1": []byte(`{"selection":{"states":4},"host":2,"ordinal":2,"back":1}`), "drop/1": {1}, "drop/2": {2},
		"in": storage.EncodeOffset(3), frontier.MarkSeedPages + "http://a.test/": []byte("9"),
		frontier.MarkSeedPages + "http://b.test/": []byte("10"),
	})
	add("b.test", map[string][]byte{
		"retry/7": []byte(`{"selection":{"states":4},"host":1,"back":3}`), "drop/2": {3}, marks.Paused: {1},
		"retry/8": []byte(`{"selection":{"host":"b.test"},"host":2,"ordinal":3}`),
		frontier.MarkSeedPages + "http://a.test/": []byte("11"), frontier.MarkSeedPages + "http://b.test/": []byte("8"),
	})
	stored := must.Get(write())(t)
	delete(stored, marks.Held)
	var got []string
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		got = append(got, name+"="+string(stored[name]))
	}
	want := []string{
		"drop/1=\x02", "drop/2=\x03", `retry/1={"selection":{"states":4}}`,
		`retry/2={"selection":{"host":"b.test"},"host":2,"ordinal":3}`,
		"seedpages/http://a.test/=11", "seedpages/http://b.test/=10", // the greatest
	}
	if !slices.Equal(got, want) {
		t.Errorf("the whole has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	add("c.test", map[string][]byte{"delete-all/7": []byte(`{"before":7}`)})
	assert.Fails(write())(t, ErrSweeping, "a deletion is under way")
}
