package storage_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// describeOlder writes what the code reads from the database. It is for the revision that made it.
var describeOlder = flag.Bool("describe", false, "write testdata/database-3.txt")

// TestOlderDatabase opens a database file that an earlier revision (bdfdc17) made, and reads all of
// it. The result is what that revision read. Then the test goes on with the file.
func TestOlderDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, storage.FileName)
	before := unpacked(t, filepath.Join("testdata", "database-3.db.gz"))
	must.Do(t, os.WriteFile(path, before, 0o640))
	for _, o := range []storage.Options{{ReadOnly: true}, {}} {
		s := must.Get(storage.Open(dir, o))(t)
		text := describe(t, s)
		if !o.ReadOnly { // it has its version twice now
			text = strings.Replace(text, "bucket meta: 4 rows", "bucket meta: 3 rows", 1)
		}
		compareOlder(t, text)
		must.Do(t, s.Close())
		if after, err := os.ReadFile(path); err != nil || bytes.Equal(before, after) != o.ReadOnly {
			t.Fatalf("reading with %+v changed the file, or did not bring it over (%v)", o, err)
		}
	}
	goOn(t, dir)
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	packed := must.Get(gzip.NewReader(f))(t)
	return must.Get(io.ReadAll(packed))(t)
}

func compareOlder(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join("testdata", "database-3.txt")
	if *describeOlder {
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	b := must.Get(os.ReadFile(path))(t)
	got, want := strings.Split(text, "\n"), strings.Split(string(b), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d of %s differs:\ngot  %q\nwant %q", i+1, path, got[min(i, len(got)-1)],
				want[min(i, len(want)-1)])
		}
	}
}

// goOn gives every URL of the older database an outcome, adds a URL and checks the file.
func goOn(t *testing.T, dir string) {
	t.Helper()
	s := must.Get(storage.Open(dir, storage.Options{}))(t)
	defer s.Close()
	now := time.Unix(1_800_000_000, 0)
	var b storage.Batch
	must.Get(s.Walk(t.Context(), storage.Position{}, 0, func(l *storage.Located) error {
		b.Done = append(b.Done, storage.Done{
			Host: l.Host.ID, Ordinal: l.Ordinal, Origin: l.Origin, Priority: l.Priority,
			Outcome: storage.Outcome{State: storage.Fetched, Status: 200, At: now, Due: now.Add(time.Hour)},
		})
		u, err := weburl.Parse(l.URL().String())
		b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), Stripped: l.Stripped, At: now})
		if l.Stripped != "" {
			b.Found[len(b.Found)-1].Fingerprint = s.Fingerprint(u.Origin().URL(l.Stripped))
		}
		return err
	}))(t)
	known := len(b.Found)
	u := must.Get(weburl.Parse("https://www.example.com/new"))(t)
	b.Found = append(b.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now})
	if r, err := s.Commit(&b); err != nil || r.Added != 1 {
		t.Errorf("%d of %d known URLs and a new one were added: %v", r.Added, known, err)
	}
	if c := s.Counters(); c.Of(storage.Fetched) != uint64(known) || c.Of(storage.Queued) != 1 {
		t.Errorf("counters after the commit: %+v", c)
	}
	check(t, s)
}

func check(t *testing.T, s *storage.Store) {
	t.Helper()
	must.Do(t, s.Check(t.Context(), func(f storage.Finding) { t.Errorf("check: %s", f.Text) }))
}

// describe reads all that a database holds. It prints no names of fields, so that a renamed field
// does not change the text.
func describe(t *testing.T, s *storage.Store) string {
	t.Helper()
	check(t, s)
	d := &describer{t: t, s: s}
	c := s.Counters()
	d.line("counters: %d hosts, %d URLs, %d requests, %d bytes, %d robots records, states %v",
		c.Hosts, c.URLs, c.Requests, c.Bytes, c.Policies, c.States)
	d.stats()
	seeds, err := s.Seeds()
	d.must(err)
	var scope []string
	for _, seed := range seeds {
		scope = append(scope, seed.URL)
	}
	d.line("scope: %q", scope)
	marks, err := s.Marks("")
	d.must(err)
	for _, name := range []string{"ledger", "other"} {
		d.line("mark %s: %x of %d", name, marks[name], len(marks))
	}
	d.must(s.Names("", "", func(name string, id storage.HostID) error {
		d.line("name %s: %d", name, id)
		return nil
	}))
	d.must(s.Hosts(func(h *storage.Host) error { return d.host(h.ID) }))
	_, err = s.Walk(t.Context(), storage.Position{}, 0, func(l *storage.Located) error {
		d.url(l)
		return nil
	})
	d.must(err)
	return d.b.String()
}

type describer struct {
	t *testing.T
	s *storage.Store
	b strings.Builder
}

func (d *describer) line(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *describer) must(err error) {
	d.t.Helper()
	must.Do(d.t, err)
}

func (d *describer) stats() {
	st, err := d.s.Stats(d.t.Context())
	d.must(err)
	for _, b := range st.Buckets {
		if b.Rows > 0 { // else it may be one that the older file lacks
			d.line("bucket %s: %d rows", b.Name, b.Rows)
		}
	}
}

// host describes a host, its queues and the robots records of its origins.
func (d *describer) host(id storage.HostID) error {
	h, err := d.s.HostByID(id)
	if err != nil {
		return err
	}
	d.line("host %d %s: %d URLs %v, %d requests, %d bytes", h.ID, h.Name, h.Tail, h.Counts, h.Requests, h.Bytes)
	state, err := politeness.DecodeState(h.Politeness)
	d.must(err)
	d.line("\tlast request %d, backoff %d, failures %d, cause %d, holds %d",
		unix(state.LastEnd), state.Backoff, state.Failures, state.Cause, len(state.Holds))
	if _, err := recrawl.DecodeSite(h.Site); err != nil {
		d.t.Error(err)
	}
	d.line("\tsite %x", h.Site)
	for _, e := range h.Errors {
		d.line("\t%d times %d", e.Count, e.Reason)
	}
	traps, err := d.s.Traps(id)
	d.must(err)
	for _, c := range traps {
		d.line("\ttrap %d: %d times, %q", c.Reason, c.Count, c.Samples)
	}
	for i, q := range h.Queues {
		d.line("\torigin %s: cursor %d, %d queued, %d due from %d, %d to fetch again from %d",
			q.Origin, q.Cursor, q.Queued, q.Due, q.NextDue, q.Recrawls, q.NextRecrawl)
		heads, err := d.s.Heads(storage.HeadsRequest{
			Host: id, Origin: uint8(i), Queued: 1000, Due: 1000, Recrawls: 1000, Now: time.Unix(1_900_000_000, 0),
		})
		d.must(err)
		d.line("\t\tqueued%s, due%s, again%s", ordinals(heads.Queued), ordinals(heads.Due), ordinals(heads.Recrawls))
		d.robots(q.Origin)
	}
	return nil
}

func ordinals(heads []storage.Head) (text string) {
	for i := range heads {
		text += fmt.Sprint(" ", heads[i].Ordinal)
	}
	return text
}

func (d *describer) robots(o weburl.Origin) {
	record, err := d.s.Policy(o)
	d.must(err)
	if record == nil {
		return
	}
	r, err := robots.DecodeRecord(record)
	d.must(err)
	d.line("\t\trobots.txt: %s, %d, fetched %d, %q, %d bytes %s, %.30q",
		r.Class, r.Status, unix(r.Fetched), r.ETag, len(r.Body), robots.VersionOf(r.Body), r.Body)
	encoded, err := d.s.RobotsHistory(o)
	d.must(err)
	history, err := robots.DecodeHistory(encoded)
	d.must(err)
	for _, p := range history {
		d.line("\t\tbefore %d: %s, %q", unix(p.Replaced), p.Class, p.Body)
	}
}

func (d *describer) url(l *storage.Located) {
	found, _, err := d.s.LookupSession(l.URL(), identity(l))
	if err != nil || found.Ordinal != l.Ordinal {
		d.t.Errorf("%s is found as %d: %v", l.URL(), found.Ordinal, err)
	}
	d.line("%s %s, without session %q: depth %d, %d redirects, seed %t, sitemap %t, %s, priority %d, "+
		"on %d.%d, found %d",
		l.At, l.URL(), l.Stripped, l.Depth, l.Redirects, l.Seed, l.Sitemap, l.Frequency, l.Priority,
		l.ViaHost, l.ViaOrdinal, unix(l.FirstSeen))
	o := l.Last
	if o.State == storage.Queued {
		return
	}
	d.line("\t%s, %d, %d, %d attempts, at %d, due %d, %d bytes, %x, line %d, %q, %q, %x, %x",
		o.State, o.Reason, o.Status, o.Attempts, unix(o.At), unix(o.Due), o.Bytes, o.Digest, o.Line,
		o.ETag, o.Modified, o.History, o.Simhash)
	p, ok, err := d.s.Payload(l.At.Host, o.Digest)
	d.must(err)
	if ok {
		d.line("\tbody %x in the response to %d at %d", p.SHA256, p.Ordinal, unix(p.At))
	}
}

func identity(l *storage.Located) string {
	if l.Stripped != "" {
		return l.Stripped
	}
	return l.URL().RequestURI()
}

// unix returns a time in whole seconds, 0 for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
