package frontier

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// heavyRobots is a robots.txt of 35,000 rules with a star. Each may match, so a verdict takes
// tens of milliseconds.
func heavyRobots() string {
	return "User-agent: *\n" + strings.Repeat("Disallow: /*a*b*c\n", 25_000) + "Disallow: /*denied\n"
}

// heavyPath is a path that all these rules have to be matched against.
func heavyPath(i int) string { return fmt.Sprintf("/%d/%s", i, strings.Repeat("ab*a", 50)) }

// TestHeavyRobots: workers match what takes long, one URL at a time. The verdicts are those of the
// rules, and hosts without such a file are served as if it did not exist.
func TestHeavyRobots(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.quick = true
	heavy := heavyRobots()
	w.answer = func(l Lease) answer {
		a := answer{took: 100 * time.Millisecond}
		if strings.HasPrefix(l.HostName, "heavy") {
			a.body = heavy
		}
		return a
	}
	want := 0
	for i := range 20 {
		w.add(fmt.Sprintf("http://heavy%d.test%s", i%4, heavyPath(i)),
			fmt.Sprintf("http://heavy%d.test/%d/denied%s", i%4, i, heavyPath(i)))
		for j := range 5 {
			w.add(fmt.Sprintf("http://good%d.test/%d", i, j))
			want++
		}
	}
	w.open()
	w.finish(10*time.Minute, time.Hour)
	assert.Equal(t, w.matches, 40, "verdicts came from workers")
	served := w.served()
	for i := range 20 {
		assert.Equal(t, served[fmt.Sprintf("good%d.test", i)], 5, "good", i, "test pages fetched")
	}
	rules := robots.Compile([]byte(heavy), "amble")
	for _, u := range w.pages() {
		assert.True(t, !strings.Contains(u, "heavy") || rules.MatchURL(u).Allowed, "%s was fetched", u)
	}
	assert.Equal(t, len(w.pages()), want+20, "pages")
	w.checkManners()
}

// TestDecisionIsBounded: the work of a decision about a heavy file is at most the bound.
func TestDecisionIsBounded(t *testing.T) {
	f := must.Get(New(testOptions(), NewScope(ModeAny, nil, nil), epoch))(t)
	rules := robots.Compile([]byte(heavyRobots()), "amble")
	q := &originQueue{rules: rules}
	head := &storage.Head{Entry: storage.Entry{RequestURI: heavyPath(1)}}
	v, ok := f.matches.match(q, head)
	assert.True(t, !ok, "%+v: a heavy file is matched by the owner of the frontier", v)
	// A file with as many rules as fit into the bound is matched by the frontier itself.
	few := robots.Compile([]byte("User-agent: *\n"+strings.Repeat("Disallow: /*a*b*c\n", 50)), "amble")
	if _, ok := f.matches.match(&originQueue{rules: few}, head); !ok {
		t.Error("a file of 50 rules is matched by a worker")
	}
	q.verdict = &workerVerdict{head.Ordinal, rules, robots.Verdict{Line: 7}}
	if v, ok := f.matches.match(q, head); !ok || v.Line != 7 {
		t.Errorf("%+v, %v: what a worker has brought is not used", v, ok)
	}
	q.rules = robots.Compile([]byte(heavyRobots()), "amble")
	if _, ok := f.matches.match(q, head); ok {
		t.Error("a verdict of other rules is used")
	}
}

// TestMatchThatPanics: a URL at which the rules panic is left to a worker, which ends it.
func TestMatchThatPanics(t *testing.T) {
	w := newWorld(t, testOptions(), newMemory())
	w.add("http://a.test/x", "http://a.test/y")
	w.open()
	f := w.f
	if _, ok := f.matches.match(&originQueue{}, &storage.Head{}); ok { // it has no rules at all
		t.Error("a verdict comes of a panic")
	}
	f.matches.work = -1
	w.answer = func(l Lease) answer {
		return answer{took: time.Millisecond, body: "User-agent: *\nDisallow: /*z\n"}
	}
	w.crashes = func(l Lease) bool { return strings.HasSuffix(l.URL.String(), "/x") }
	var ends []storage.Outcome
	w.committed = func(b *storage.Batch) {
		for _, d := range b.Done {
			ends = append(ends, d.Outcome)
		}
	}
	w.finish(time.Minute, time.Hour)
	assert.Slice(t, w.pages(), []string{"http://a.test/y"}, "pages")
	crashed := func(o storage.Outcome) bool {
		return o.State == storage.Failed && o.Reason == storage.ReasonCrash
	}
	assert.True(t, slices.ContainsFunc(ends, crashed), "outcomes %+v", ends)
}
