package storage

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// tester is what testing.TB and *rapid.T have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// someTime is a whole second, as the rows hold times.
var someTime = time.Unix(1_790_000_000, 0)

func mustOpen(t tester, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	must.Do(t, err, "open")
	return s
}

// openTemp opens a new store and closes it, checked, at the end of the test.
func openTemp(t *testing.T, o Options) *Store {
	t.Helper()
	s := mustOpen(t, t.TempDir(), o)
	t.Cleanup(func() {
		checkClean(t, s)
		mustClose(t, s)
	})
	return s
}

func mustClose(t tester, s *Store) {
	t.Helper()
	must.Do(t, s.Close(), "close")
}

func mustCommit(t tester, s *Store, b *Batch) Result {
	t.Helper()
	r, err := s.Commit(b)
	must.Do(t, err, "commit")
	return r
}

func findings(t tester, s *Store) []string {
	t.Helper()
	var texts []string
	must.Do(t, s.Check(context.Background(), func(f Finding) { texts = append(texts, f.Text) }), "check")
	return texts
}

func checkClean(t tester, s *Store) {
	t.Helper()
	if texts := findings(t, s); len(texts) > 0 {
		t.Fatalf("check finds:\n%s", strings.Join(texts, "\n"))
	}
}

func parse(t tester, text string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(text)
	must.Do(t, err)
	return u
}

// found returns discoveries of texts.
func found(t tester, s *Store, texts ...string) []Found {
	t.Helper()
	var all []Found
	for _, text := range texts {
		u := parse(t, text)
		all = append(all, Found{URL: u, Fingerprint: s.Fingerprint(u), At: someTime})
	}
	return all
}

// withSession returns the discovery of a URL whose text without a session id is stripped.
func withSession(t tester, s *Store, text, stripped string) Found {
	t.Helper()
	u := parse(t, stripped)
	return Found{URL: parse(t, text), Fingerprint: s.Fingerprint(u), Stripped: u.RequestURI(), At: someTime}
}

// numbered returns URLs of one host from a number to another.
func numbered(host string, from, to int) []string {
	var texts []string
	for n := from; n < to; n++ {
		texts = append(texts, fmt.Sprintf("https://%s/page/%d", host, n))
	}
	return texts
}

func readFile(t tester, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must.Do(t, err)
	return b
}

// tries sets the number of random cases of rapid in a test, unless its flag or its variable does.
func tries(t *testing.T, n int) {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != "100" {
		return
	}
	set := func(n string) {
		must.Do(t, flag.Set(f.Name, n))
	}
	set(strconv.Itoa(n))
	t.Cleanup(func() { set("100") })
}

// LookupSession finds a URL with a session id, given also its path and query without. If there is
// none, it finds the URL whose text is the one without.
func (s *rows) LookupSession(u weburl.URL, stripped string) (head Head, host Host, err error) {
	return s.lookup(u, u.Origin().URL(stripped))
}
