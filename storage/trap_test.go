package storage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func mustTraps(t *testing.T, s *Store, host HostID) []TrapCount {
	t.Helper()
	return must.Get(s.Traps(host))(t)
}

// texts returns URLs of one form with the numbers from one to another.
func texts(form string, from, to int) []string {
	var all []string
	for n := from; n < to; n++ {
		all = append(all, fmt.Sprintf(form, n))
	}
	return all
}

func TestHostURLs(t *testing.T) {
	s := openTemp(t, Options{NoSync: true, MaxHostURLs: 100})
	b := Batch{Found: found(t, s, numbered("large.example", 0, 150)...)}
	b.Found = append(b.Found, found(t, s, numbered("small.example", 0, 100)...)...)
	b.Found = append(b.Found, found(t, s, "http://large.example:8080/")...)
	for round := range 2 { // the second time, those of the first are known
		r := mustCommit(t, s, &b)
		if want := 200 - 200*round; r.Added != want || r.Trapped != 51 {
			t.Errorf("round %d: %d added, %d trapped; want %d and 51", round, r.Added, r.Trapped, want)
		}
	}
	want := []TrapCount{{Reason: TrapHostURLs, Count: 102, Samples: numbered("large.example", 100, 103)}}
	assert.Deep(t, mustTraps(t, s, 1), want, "traps")
	got := mustTraps(t, s, 2)
	assert.True(t, got == nil, "traps of the small host: %+v", got)
	h, err := s.HostByID(1)
	assert.True(t, err == nil && len(h.Queues) == 1, "a refused URL made a queue: %+v, %v", h.Queues, err)
}

// TestLimitsChangeNothingStored: a lower limit refuses new URLs and keeps those that are stored.
func TestLimitsChangeNothingStored(t *testing.T) {
	dir := t.TempDir()
	for _, limit := range []int{0, 10} {
		s := mustOpen(t, dir, Options{NoSync: true, MaxHostURLs: limit, MaxQueries: limit})
		mustCommit(t, s, &Batch{Found: found(t, s, texts("https://host.example/p?%d", 0, 50+limit)...)})
		assert.Equal(t, s.Counters().URLs, 50, "limit", limit, "URLs")
		checkClean(t, s)
		mustClose(t, s)
	}
}

// TestQueries: one path with very many queries is limited, its site is not.
func TestQueries(t *testing.T) {
	s := openTemp(t, Options{NoSync: true, MaxQueries: 20})
	for range 3 {
		b := Batch{Found: found(t, s, texts("https://host.example/search?q=%d", 0, 100)...)}
		b.Found = append(b.Found, found(t, s, texts("https://host.example/page/%d?lang=en", 0, 100)...)...)
		b.Found = append(b.Found, found(t, s, texts("http://host.example/search?q=%d", 0, 20)...)...)
		mustCommit(t, s, &b)
	}
	added := s.Counters().URLs
	traps := mustTraps(t, s, 1)
	assert.True(t, len(traps) == 1 && traps[0].Reason == TrapQueries && added >= 140 && added <= 160,
		"%d URLs, traps %+v", added, traps)
	seed := Batch{Found: found(t, s, "https://host.example/search?q=seed")}
	seed.Found[0].Seed = true
	assert.Equal(t, mustCommit(t, s, &seed).Added, 1, "a seed was refused")
}

// TestTallyNeverTooHigh compares tallies with full counts, and checks that a key with more than its
// share of a stream is found.
func TestTallyNeverTooHigh(t *testing.T) {
	full := make(map[uint64]uint32)
	var small tally
	state := uint64(1)
	for n := range 20_000 {
		state = state*6364136223846793005 + 1442695040888963407
		key := 1 + state>>33%300
		if n%4 == 0 {
			key = 0
		}
		full[key]++
		small = small.add(key, 8)
		for _, item := range small {
			must.True(t, item.count <= full[item.key], "key %d counts %d, came %d times", item.key, item.count,
				full[item.key])
		}
	}
	assert.True(t, len(small) <= 8 && small.count(0) >= 20_000/4-20_000/9, "a quarter of the stream counts as %d: %v",
		small.count(0), small)
}

// TestSessions: one variant of a URL is stored; URLs without a session id, redirects among the
// variants, and exact copies are distinguished.
func TestSessions(t *testing.T) {
	for _, spilled := range []bool{false, true} {
		s := openTemp(t, Options{NoSync: true})
		const page = "https://host.example/page"
		one, two := page+";sid=1", page+";sid=2"
		redirected := withSession(t, s, two, page)
		redirected.Redirects = 1
		steps := []struct {
			found          Found
			added, trapped int
		}{
			{withSession(t, s, one, page), 1, 0},
			{withSession(t, s, one, page), 0, 0},
			{withSession(t, s, two, page), 0, 1},
			{found(t, s, page)[0], 1, 0},
			{found(t, s, page)[0], 0, 0},
			{withSession(t, s, two, page), 0, 1},
			{redirected, 1, 0},
			{redirected, 0, 0},
			{withSession(t, s, two, page), 0, 0},
			{withSession(t, s, "http://host.example/page;sid=1", "http://host.example/page"), 1, 0},
		}
		for i, step := range steps {
			r := mustCommit(t, s, &Batch{Found: []Found{step.found}})
			assert.True(t, r.Added == step.added && r.Trapped == step.trapped,
				"spilled %t, step %d: %d added, %d trapped; want %d and %d", spilled, i, r.Added, r.Trapped, step.added,
				step.trapped)
			if spilled { // each step meets those before it in the url and seen buckets
				mustCommit(t, s, &Batch{Found: found(t, s, numbered("host.example", 100*i, 100*i+80)...)})
			}
			checkClean(t, s)
		}
		want := []TrapCount{{Reason: TrapSession, Count: 2, Samples: []string{two}}}
		assert.Deep(t, mustTraps(t, s, 1), want, "traps")
		head, _, err := s.LookupSession(parse(t, one), "/page")
		assert.True(t, err == nil && head.Ordinal == 0 && head.RequestURI == "/page;sid=1" && head.Stripped == "/page",
			"lookup of the first variant: %+v, %v", head, err)
		if u, err := s.URL(1, 0); err != nil || u.String() != one {
			t.Errorf("the URL to fetch is %s, %v, want %s", u, err, one)
		}
	}
}

// TestSameContent: links to the host of pages beyond the limit with one content are refused; links
// of others and to other hosts are accepted.
func TestSameContent(t *testing.T) {
	s := openTemp(t, Options{NoSync: true, MaxSameDigest: 3})
	mustCommit(t, s, &Batch{Found: found(t, s, numbered("host.example", 0, 10)...)})
	page := func(n uint32, digest uint64) Batch {
		b := Batch{Found: found(t, s, fmt.Sprintf("https://host.example/from/%d", n),
			fmt.Sprintf("https://other.example/from/%d", n))}
		for i := range b.Found {
			b.Found[i].ViaHost, b.Found[i].ViaOrdinal = 1, n
		}
		b.Done = []Done{{Host: 1, Ordinal: n, Outcome: Outcome{State: Fetched, At: someTime, Digest: digest}}}
		return b
	}
	for n := range uint32(8) {
		digest, added := uint64(7), 2
		if n == 6 {
			digest = 8
		} else if n >= 3 {
			added = 1
		}
		b := page(n, digest)
		if r := mustCommit(t, s, &b); r.Added != added || r.Trapped != 2-added {
			t.Errorf("page %d: %d added, %d trapped; want %d added", n, r.Added, r.Trapped, added)
		}
	}
	b := page(0, 7) // fetched again: known, and not one more page with this content
	r := mustCommit(t, s, &b)
	assert.True(t, r.Added+r.Trapped == 0, "the first page again: %+v", r)
	traps := mustTraps(t, s, 1)
	assert.True(t, len(traps) == 1 && traps[0].Reason == TrapSameContent && traps[0].Count == 4, "traps are %+v", traps)
}

// TestRefusedByWorkers: the URLs that workers refuse are counted for known hosts, with samples of
// bounded size, and create no host.
func TestRefusedByWorkers(t *testing.T) {
	s := openTemp(t, Options{NoSync: true})
	long := "https://host.example/" + strings.Repeat("a", 1500)
	mustCommit(t, s, &Batch{
		Found: found(t, s, "https://host.example/"),
		Refused: []Refused{
			{Host: "host.example", Reason: 4, URL: parse(t, "https://host.example/1800/1")},
			{Host: "host.example", Reason: 1, URL: parse(t, long)},
			{Host: "unknown.example", Reason: 1, URL: parse(t, "https://unknown.example/")},
			{Host: strings.Repeat("x", 300), Reason: 1},
			{Host: "host.example", Reason: 4, URL: parse(t, "https://host.example/1800/1")},
		},
	})
	want := []TrapCount{
		{Reason: 1, Count: 1, Samples: []string{long[:512]}},
		{Reason: 4, Count: 2, Samples: []string{"https://host.example/1800/1"}},
	}
	assert.Deep(t, mustTraps(t, s, 1), want, "traps")
	assert.Equal(t, s.Counters().Hosts, 1, "hosts")
}
