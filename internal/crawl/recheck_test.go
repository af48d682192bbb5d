package crawl

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// TestDeniedURLsAreCheckedAgain changes a robots.txt between two fetches of
// it: what was denied and is now allowed must be fetched, what was allowed and
// is now denied and still queued must not.
func TestDeniedURLsAreCheckedAgain(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		links := []string{"/closed/1", "/closed/2", "/private/1"}
		for _, c := range "abcdefghijklmnopqrstuvwxyz" {
			links = append(links, "/open/"+string(c))
		}
		routes := testweb.Routes{
			"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /closed/\nDisallow: /private/\n"),
			"/":           testweb.Page("root", links...),
		}
		for _, l := range links {
			routes[l] = testweb.Page(l)
		}
		later := testweb.Routes{}
		for path, h := range routes {
			later[path] = h
		}
		later["/robots.txt"] = testweb.Robots("User-agent: *\nDisallow: /private/\nDisallow: /open/z\n")
		web := serve(testweb.Site{Host: "a.test", Handler: routes})
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay = 100 * time.Millisecond
		o.Frontier.Robots.MinLifetime = time.Second
		o.Frontier.Robots.MaxLifetime = time.Second
		o.Frontier.Robots.NotRobotsLifetime = time.Second
		e, err := Open(o, testLog(t))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		go func() {
			for len(web.Requests()) < 4 {
				time.Sleep(5 * time.Millisecond)
			}
			web.SetHandler("a.test", later)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := e.Run(ctx, []Seed{seed(t, web.URL("a.test", "/"))}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range web.Requests().Pages() {
			got = append(got, r.Path)
		}
		for _, want := range []string{"/closed/1", "/closed/2", "/open/y"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s was not fetched", want)
			}
		}
		for _, never := range []string{"/private/1", "/open/z"} {
			if slices.Contains(got, never) {
				t.Errorf("%s was fetched", never)
			}
		}
		if marks, err := e.store.Marks(markRecheck); err != nil || len(marks) > 0 {
			t.Errorf("marks %v are left (%v)", marks, err)
		}
	})
}

// TestSweepMarkOfASecond: while a second sweep for the same cause waits, neither a step nor the end of
// the first may let a restart forget it.
func TestSweepMarkOfASecond(t *testing.T) {
	first, second := newRecheck(nil, frontier.Recheck{Host: 7}), newRecheck(nil, frontier.Recheck{Host: 7})
	other := newRecheck(nil, frontier.Recheck{Host: 7, Origin: 1})
	first.at.Ordinal, other.at.Ordinal = 1000, 1000
	one := make([]storage.Done, 1)
	for name, test := range map[string]struct {
		step  swept
		marks map[string][]byte
	}{
		"a step":                    {swept{sweep: first, done: one}, nil},
		"the end":                   {swept{sweep: first, done: one, end: true}, nil},
		"a step of another":         {swept{sweep: other, done: one}, map[string][]byte{other.mark: other.encode()}},
		"an empty step of another":  {swept{sweep: other}, nil},
		"the end of another origin": {swept{sweep: other, end: true}, map[string][]byte{other.mark: nil}},
	} {
		var b batch
		q := sweepQueue{waiting: []*sweep{second}, isActive: true}
		if err := q.take(&test.step, &b); err != nil || !reflect.DeepEqual(b.rows.Marks, test.marks) {
			t.Errorf("%s: the marks are %v (%v), want %v", name, b.rows.Marks, err, test.marks)
		}
		if goesOn := slices.Contains(q.waiting, test.step.sweep); goesOn == test.step.end || q.waiting[0] != second {
			t.Errorf("%s: the next sweeps are %v", name, q.waiting)
		}
	}
}

// TestSecondRecheckReadsTooEarly: a second recheck that reads the denied URLs before what the first
// found is on disk must not request them once more.
func TestSecondRecheckReadsTooEarly(t *testing.T) {
	s, err := storage.Open(t.TempDir(), storage.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	commit := func(b storage.Batch) {
		t.Helper()
		if _, err := s.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
	u := parse(t, "http://a.test/x")
	commit(storage.Batch{Found: []storage.Found{{URL: u, Fingerprint: s.Fingerprint(u)}}})
	commit(storage.Batch{Done: []storage.Done{{Host: 1, Outcome: storage.Outcome{State: storage.Denied}}}})
	all := frontier.Recheck{Host: 1, Rules: robots.Compile(nil, "amble")}
	step := func() []storage.Done {
		done, end, err := newRecheck(nil, all).step(t.Context(), s, testLog(t), time.Now())
		if len(done) != 1 || !end || err != nil {
			t.Fatalf("a recheck finds %d URLs, want one; end %t, %v", len(done), end, err)
		}
		return done
	}
	first, second := step(), step()
	commit(storage.Batch{Done: first})
	commit(storage.Batch{Done: []storage.Done{{Host: 1, Outcome: storage.Outcome{State: storage.Fetched}}}})
	commit(storage.Batch{Done: second})
	if head, _, err := s.Lookup(u); err != nil || head.Last.State != storage.Fetched || !head.Last.Due.IsZero() {
		t.Errorf("the URL is %s, due %v (%v), want fetched", head.Last.State, head.Last.Due, err)
	}
}
