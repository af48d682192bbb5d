package crawl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// seedModel is the seeds that a crawl should have, by URL.
type seedModel map[string]modelSeed

type modelSeed struct {
	tag      string
	settings bool
}

// change is what a wish should do.
func (m seedModel) change(w *SeedWish) (c SeedCounts) {
	named := map[string]bool{}
	for i := range w.Add {
		s := &w.Add[i]
		before, known := m[s.URL.String()]
		named[s.URL.String()] = true
		switch {
		case !known:
			c.Added++
			m[s.URL.String()] = modelSeed{s.Tags[0], s.Settings}
		case before.tag == s.Tags[0]:
			c.Known++
		default:
			c.Changed++
			m[s.URL.String()] = modelSeed{s.Tags[0], s.Settings || before.settings}
		}
	}
	for _, u := range w.Remove {
		delete(m, u.String())
		c.Removed++
	}
	for url, s := range m {
		if w.Settings && s.settings && !named[url] {
			delete(m, url)
			c.Removed++
		}
	}
	return c
}

// holds compares the seeds with the model.
func (m seedModel) holds(t *testing.T, after string, all []Seed, err error) {
	t.Helper()
	must.True(t, err == nil && len(all) == len(m), "%s: %d seeds, want %d: %v", after, len(all), len(m), err)
	for i := range all {
		s := &all[i]
		if want, known := m[s.URL.String()]; !known || !slices.Equal(s.Tags, []string{want.tag}) {
			t.Fatalf("%s: the seed %s has the tags %v, want %+v", after, s.URL, s.Tags, want)
		}
	}
}

// isInForce looks at the scope and the database of a crawl: the URLs of seeds are in both.
func (m seedModel) isInForce(t *testing.T, e *Engine, urls []string) {
	t.Helper()
	for _, url := range urls {
		u := parse(t, url)
		_, want := m[url]
		assert.Equal(t, e.scope.Load().Check(u, seeds.Ref{}) == frontier.InScope, want, url, "is in scope")
		_, _, err := e.store.Lookup(u)
		assert.True(t, !want || err == nil, "the seed %s: %v", url, err)
	}
}

// wish makes up a change of seeds of a web, and whether it removes one that there is not.
func (m seedModel) wish(t *testing.T, random *rand.Rand, urls []string) (w SeedWish, unknown bool) {
	w.Settings = random.IntN(5) == 0
	for _, i := range random.Perm(len(urls))[:random.IntN(3)] {
		s := seed(t, urls[i])
		s.Source, s.Settings, s.Tags = "test", w.Settings, []string{fmt.Sprint("tag", random.IntN(2))}
		w.Add = append(w.Add, s)
	}
	if !w.Settings && len(w.Add) == 0 {
		url := urls[random.IntN(len(urls))]
		_, known := m[url]
		w.Remove, unknown = []weburl.URL{parse(t, url)}, !known
	}
	return w, unknown
}

// TestChangeSeeds adds, changes and removes seeds at random while the crawl runs, between two runs, and with restarts.
// The seeds are those of a plain map at each step. In the end the pages of all seeds were fetched, and no URL waits.
func TestChangeSeeds(t *testing.T) {
	for n := range uint64(4) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				random := rand.New(rand.NewPCG(n, 1))
				var sites []testweb.Site
				for i := range 6 {
					sites = append(sites, site(fmt.Sprintf("h%d.test", i), "", paths("/", 8), nil))
				}
				web := serve(sites...)
				var urls []string
				for i := range sites {
					urls = append(urls, web.URL(sites[i].Host, "/"))
				}
				o := testOptions(t, web)
				o.ExitWhenDone = false
				changeAtRandom(t, o, web, random, urls)
			})
		})
	}
}

func changeAtRandom(t *testing.T, o Options, web *testweb.Web, random *rand.Rand, urls []string) {
	m := seedModel{}
	first := SeedWish{Add: seedList(t, urls[0])}
	first.Add[0].Source, first.Add[0].Tags = "test", []string{"tag0"}
	changeStopped(t, o, m, first, false)
	r := start(t, o, web)
	for step := range 40 {
		r.until("the crawl runs", func() bool { return r.mailbox.Load() != nil })
		w, unknown := m.wish(t, random, urls)
		switch what := random.IntN(8); {
		case what == 0:
			r.end()
			changeStopped(t, o, m, w, unknown)
			r = start(t, o, web)
		default:
			got, err := r.ChangeSeeds(t.Context(), w)
			checkChange(t, m, &w, unknown, got, err)
			all, err := r.Seeds()
			m.holds(t, fmt.Sprint("step ", step), all, err)
			m.isInForce(t, r.Engine, urls)
		}
	}
	r.until("all URLs are fetched or excluded", func() bool {
		urls := r.Status().URLs
		return r.mailbox.Load() != nil && urls["queued"]+urls["retrying"] == 0 && urls["fetched"] > 0
	})
	r.end()
	states := stored(t, o.DataDir)
	for url := range m {
		assert.Equal(t, states[url].State, storage.Fetched, "the seed", url)
	}
}

// changeStopped changes the seeds of a crawl that does not run.
func changeStopped(t *testing.T, o Options, m seedModel, w SeedWish, unknown bool) {
	t.Helper()
	k := must.Get(OpenSeeds(o))(t)
	got, err := k.ChangeSeeds(t.Context(), w)
	checkChange(t, m, &w, unknown, got, err)
	all, err := StoredSeeds(k.store)
	m.holds(t, "a change between two runs", all, err)
	must.Do(t, k.Close())
}

// checkChange compares what a change did with the model, and has the model follow.
func checkChange(t *testing.T, m seedModel, w *SeedWish, unknown bool, got SeedCounts, err error) {
	t.Helper()
	if unknown {
		must.True(t, errors.Is(err, inspect.ErrUnknown), "an unknown seed is removed: %v", err)
		return
	}
	want := m.change(w)
	must.True(t, err == nil && got == want, "%+v: %+v, want %+v: %v", w, got, want, err)
}
