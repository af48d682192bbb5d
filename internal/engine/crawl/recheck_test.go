package crawl

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
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
		o := shortLived(t, web, time.Second)
		o.Frontier.Politeness.Delay = 100 * time.Millisecond
		e := must.Get(Open(o, testLog(t)))(t)
		defer e.Close()
		go func() {
			for len(web.Requests()) < 4 {
				time.Sleep(5 * time.Millisecond)
			}
			web.SetHandler("a.test", later)
		}()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		must.Get(e.Run(ctx, []Seed{seed(t, web.URL("a.test", "/"))}))(t)
		var got []string
		for _, r := range web.Requests().Pages() {
			got = append(got, r.Path)
		}
		for _, want := range []string{"/closed/1", "/closed/2", "/open/y"} {
			assert.True(t, slices.Contains(got, want), "%s was not fetched", want)
		}
		for _, never := range []string{"/private/1", "/open/z"} {
			assert.True(t, !slices.Contains(got, never), "%s was fetched", never)
		}
		marks, err := e.store.Marks(sweep.MarkRecheck)
		assert.True(t, err == nil && len(marks) <= 0, "marks %v are left (%v)", marks, err)
	})
}

// TestSweepMarkOfASecond: while a second sweep for the same cause waits, neither a step nor the end of
// the first may let a restart forget it.
func TestSweepMarkOfASecond(t *testing.T) {
	var source sweep.Source
	first, second := source.Recheck(frontier.Recheck{Host: 7}), source.Recheck(frontier.Recheck{Host: 7})
	other := source.Recheck(frontier.Recheck{Host: 7, Origin: 1})
	one := make([]storage.Done, 1)
	for name, test := range map[string]struct {
		step  sweep.Step
		marks map[string][]byte
	}{
		"a step":  {sweep.Step{Sweep: first, Done: one}, nil},
		"the end": {sweep.Step{Sweep: first, Done: one, End: true}, nil},
		"a step of another": {sweep.Step{Sweep: other, Done: one},
			map[string][]byte{other.Mark(): other.Encode()}},
		"an empty step of another":  {sweep.Step{Sweep: other}, nil},
		"the end of another origin": {sweep.Step{Sweep: other, End: true}, map[string][]byte{other.Mark(): nil}},
	} {
		var b batch
		q := sweepQueue{waiting: []*sweep.Sweep{second}, isActive: true}
		if err := q.take(&test.step, &b); err != nil || !reflect.DeepEqual(b.rows.Marks, test.marks) {
			t.Errorf("%s: the marks are %v (%v), want %v", name, b.rows.Marks, err, test.marks)
		}
		assert.True(t, slices.Contains(q.waiting, test.step.Sweep) != test.step.End && q.waiting[0] == second,
			"%s: the next sweeps are %v", name, q.waiting)
	}
}
