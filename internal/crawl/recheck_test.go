package crawl

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testweb"
)

// TestDeniedURLsAreAskedAboutAgain changes a robots.txt between two fetches of
// it: what was denied and is now allowed must be fetched, what was allowed and
// is now denied and still queued must not.
func TestDeniedURLsAreAskedAboutAgain(t *testing.T) {
	t.Parallel()
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
	web, err := testweb.New(testweb.Config{Sites: []testweb.Site{{Host: "a.test", Handler: routes}}})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
}

// TestRecheckMarkOfASecondWalk: while a second walk over an origin waits, neither a page nor the
// end of the first may let a restart forget it.
func TestRecheckMarkOfASecondWalk(t *testing.T) {
	second := &recheck{Recheck: frontier.Recheck{Host: 7, Origin: 1}}
	r := &run{rechecks: []*recheck{second}}
	for _, next := range [][]byte{{0, 0, 3, 232}, nil} {
		if got := r.recheckMark(&rechecked{mark: second.mark(), next: next}); !slices.Equal(got, make([]byte, 4)) {
			t.Errorf("a walk at %v leaves the mark %v", next, got)
		}
		other := &recheck{Recheck: frontier.Recheck{Host: 7}}
		if got := r.recheckMark(&rechecked{mark: other.mark(), next: next}); !slices.Equal(got, next) {
			t.Errorf("another origin's walk at %v leaves the mark %v", next, got)
		}
	}
}
