package crawl

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/modules/audit"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/testing/zoo"
	"github.com/amble-crawler/amble/storage"
)

// wallWeb is a web in virtual time of hosts that put up walls.
type wallWeb struct {
	zoo    *zoo.Zoo
	web    *testweb.Web
	visits map[string]func() []zoo.Visit
	seeds  []string
}

func newWallWeb(t *testing.T, network *memnet.Network) *wallWeb {
	web := testweb.Serve(t, testweb.Config{Network: network})
	return &wallWeb{zoo: newZoo(t, web), web: web, visits: make(map[string]func() []zoo.Visit)}
}

// add adds a host.
func (w *wallWeb) add(t *testing.T, name string, wall zoo.Wall) {
	t.Helper()
	visits := must.Get(w.zoo.AddWall(name, wall))(t)
	w.visits[name] = visits
	w.seeds = append(w.seeds, w.zoo.URL(name))
}

func (w *wallWeb) options(t *testing.T) Options {
	o := testOptions(t, w.web)
	o.GiveUpAfter = 30 * 24 * time.Hour
	o.Frontier.Politeness.Delay = time.Second
	o.Frontier.Politeness.PerIP = 256
	return o
}

// usual is the longest gap between two requests that is no wait for a wall.
const usual = 50 * time.Second

// checkVisits holds the visits of a host with a wall against what is promised: few requests into the
// wall before it is seen, and then one a period of a backoff that doubles, or a day once the host is
// parked.
func checkVisits(t *testing.T, name string, visits []zoo.Visit) {
	t.Helper()
	early, probes, last := 0, 0, time.Duration(0)
	known := make(map[string]bool) // pages in directories that answered
	for i, v := range visits {
		if !v.Refused {
			known[v.Target] = known[v.Target] || strings.Count(v.Target, "/") > 1
			continue
		}
		gap := v.At.Sub(visits[i-1].At)
		if probes == 0 && gap < usual {
			early++
			continue
		}
		least := min(max(time.Minute, 2*last*4/5), 24*time.Hour) // a backoff is up to a quarter longer at random
		assert.True(t, gap >= least && (throttles(name) || gap <= 45*time.Minute || gap >= 24*time.Hour),
			"%s: probe %d came %v after the request before, want %v at least", name, probes+1, gap, least)
		assert.True(t, probes%2 != 0 || len(known) <= 1 || throttles(name) || known[v.Target],
			"%s: probe %d is of %s, which never answered", name, probes+1, v.Target)
		probes, last = probes+1, gap
	}
	assert.True(t, early <= 10 && probes != 0, "%s: %d requests into the wall before it was seen, and %d probes", name,
		early, probes)
}

// hasTwo reports whether a page was fetched before a wall and after it, because probes asked for it.
func hasTwo(lines []line) bool {
	return len(lines) == 2 && lines[0].Status == 200 && lines[0].Reason == "" && lines[1].Reason == ""
}

// throttles reports whether a wall makes its host back off before it is seen.
func throttles(kind string) bool { return kind == "rate-limit" || kind == "challenge-503" }

// checkAudit checks that the audit of a crawl finds nothing.
func checkAudit(t *testing.T, o Options) {
	t.Helper()
	r, err := audit.Run(t.Context(), [][]string{{filepath.Join(o.DataDir, requestlog.DirName)}},
		audit.Options{Robots: o.Frontier.Robots})
	assert.True(t, err == nil && r.Requests != 0, "the audit has %d requests: %v", r.Requests, err)
	for _, v := range r.Violations {
		t.Errorf("audit: %+v", v)
	}
}

// TestHeavyWalls: of each kind of wall the crawl sees few refusals, then probes it once in each period, and
// when the wall ends it fetches every page. What the wall sent is no page, and its links are not
// followed once it was seen.
func TestHeavyWalls(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		for _, kind := range zoo.WallKinds() {
			lasts := 25 * time.Minute
			if throttles(kind) {
				lasts = 3 * time.Hour // seen later
			}
			w.add(t, kind, zoo.Wall{Kind: kind, Pages: 40, Open: 15, Lasts: lasts})
		}
		o := w.options(t)
		o.Frontier.MaxAttempts = 1 // a wall uses up none
		crawl(t, o, w.seeds...)
		checkAudit(t, o)
		all, lines := stored(t, o.DataDir), outputLines(t, o.Archive.Dir)
		for _, kind := range zoo.WallKinds() {
			visits := w.visits[kind]()
			checkVisits(t, kind, visits)
			pages, written, again := 0, 0, 0
			for u, outcome := range all {
				switch {
				case !strings.Contains(u, "//"+w.zoo.Host(kind)):
				case strings.HasSuffix(u, "/behind-the-wall"):
					t.Errorf("%s: a link of a wall that was known was followed", kind)
				case strings.HasSuffix(u, "/of-the-wall"):
					assert.True(t, kind == "same-document" || kind == "gate" || kind == "soft-block" ||
						kind == "challenge-page", "%s: a link of the wall was followed", kind)
				default:
					pages++
					got := lines[u]
					written += len(got)
					if hasTwo(got) {
						again++
						got = got[1:]
					}
					for i, line := range got { // what the wall sent has a later line that says so
						if (line.Reason == "superseded") != (i%2 == 1) || len(got)%2 == 0 {
							t.Errorf("%s: the lines of %s are %+v", kind, u, got)
							break
						}
					}
					assert.True(t, outcome.State == storage.Fetched && outcome.Status == 200 && len(got) != 0 &&
						got[len(got)-1].Status == 200 && got[len(got)-1].Reason == "",
						"%s: %s is %+v, and its lines are %+v", kind, u, outcome, got)
				}
			}
			last := make(map[string]bool) // the last visit of each page was no refusal
			for _, v := range visits {
				last[v.Target] = !v.Refused
			}
			for target, ok := range last {
				assert.True(t, ok || target == "/of-the-wall", "%s: %s was refused the last time", kind, target)
			}
			assert.AtMost(t, again, 1, kind, "pages that answered were fetched again")
			assert.True(t, pages == 41 && written <= pages+20,
				"%s: %d pages with %d lines of output, want 41 and 20 more at most", kind, pages, written)
		}
	})
}

// TestHeavyWallsCostOthersNothing: hosts without a wall are crawled as fast as they were where a third of
// the hosts put one up midway.
func TestHeavyWallsCostOthersNothing(t *testing.T) {
	t.Parallel()
	finished := func(kind string) (last time.Duration, requests int) {
		virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
			w := newWallWeb(t, network)
			for i := range 12 {
				wall := zoo.Wall{Pages: 40}
				if i%3 == 0 {
					wall.Kind, wall.Open = kind, 20
				}
				w.add(t, string(rune('a'+i)), wall)
			}
			o := w.options(t)
			o.Workers, o.GiveUpAfter = 8, time.Minute
			began := time.Now()
			crawl(t, o, w.seeds...)
			for i := range 12 {
				visits := w.visits[string(rune('a'+i))]()
				if i%3 != 0 {
					last = max(last, visits[len(visits)-1].At.Sub(began))
					requests += len(visits)
				}
			}
		})
		return last, requests
	}
	without, pages := finished("")
	with, same := finished("refusal")
	t.Logf("the others: %d requests in %v, without walls %d in %v", same, with, pages, without)
	assert.True(t, pages == 8*41 && same == pages && with <= without+without/50,
		"the others have %d requests in %v, and %d in %v without walls", same, with, pages, without)
}

// TestWallSurvives: backoff and the put-back of URLs go on after a restart. TestSoakParkedWall has
// a wall that lasts until its host is parked.
func TestWallSurvives(t *testing.T) {
	t.Parallel()
	crawlThroughWall(t, 40*time.Minute, 0, 90*time.Second, 10*time.Minute)
}

// crawlThroughWall crawls a host with a wall that lasts for some time, and restarts the crawl after
// each of the limits. The host is left alone for a day as often as daily says.
func crawlThroughWall(t *testing.T, lasts time.Duration, daily int, limits ...time.Duration) {
	t.Helper()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		w.add(t, "refusal", zoo.Wall{Kind: "refusal", Pages: 40, Open: 15, Lasts: lasts})
		o := w.options(t)
		for _, limit := range limits {
			must.Get(crawlFor(t, o, limit, w.seeds...))(t)
		}
		crawl(t, o, w.seeds...)
		checkAudit(t, o)
		visits := w.visits["refusal"]()
		checkVisits(t, "refusal", visits)
		days := 0
		for i := range visits[1:] {
			if visits[i+1].At.Sub(visits[i].At) >= 24*time.Hour {
				days++
			}
		}
		refused := len(slices.DeleteFunc(visits, func(v zoo.Visit) bool { return !v.Refused }))
		assert.True(t, days == daily && refused <= 18, "%d gaps of a day, and %d refusals in %v", days, refused, lasts)
		for u, outcome := range stored(t, o.DataDir) {
			assert.Equal(t, outcome.State, storage.Fetched, u, "is", outcome)
		}
	})
}

// TestNoWall: a closed section and a single page behind a challenge are no wall: nothing slows the host
// down for long, and these URLs fail.
func TestNoWall(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		open, closed := paths("/open/", 40), paths("/members/", 20)
		routes := testweb.Routes{"/challenged": answerWith(403, "cf-mitigated", "challenge")}
		for _, path := range closed {
			routes[path] = answerWith(403)
		}
		all := append(append(slices.Clone(closed), "/challenged"), open...)
		web := testweb.Serve(t,
			testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", all, routes)}})
		o := testOptions(t, web)
		o.GiveUpAfter = 24 * time.Hour
		o.Frontier.Politeness.Delay = time.Second
		began := time.Now()
		crawl(t, o, web.URL("a.test", "/"))
		assert.AtMost(t, time.Since(began), 5*time.Minute, "the crawl took")
		want := map[string]storage.State{"a.test/": storage.Fetched, "a.test/challenged": storage.Failed}
		for _, path := range open {
			want["a.test"+path] = storage.Fetched
		}
		for _, path := range closed {
			want["a.test"+path] = storage.Failed
		}
		checkStates(t, o, want)
		checkOutput(t, o)
		assert.Equal(t, stored(t, o.DataDir)[web.URL("a.test", "/challenged")].Reason, storage.ReasonWall,
			"the challenge ended as")
	})
}

// TestWallBehindFirstPage: a host that answers its first page and refuses all others, in two sections, loses none of
// them, be they many or so few that its queue ends while the wall is only suspected.
func TestWallBehindFirstPage(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		pages := map[string]int{"many": 51, "few": 6}
		for name, n := range pages {
			w.add(t, name,
				zoo.Wall{Kind: "refusal", Pages: n, Sections: 2, Open: 1, FirstPage: true, Lasts: 25 * time.Minute})
		}
		o := w.options(t)
		o.Frontier.MaxAttempts = 1 // a wall uses up none
		crawl(t, o, w.seeds...)
		checkAudit(t, o)
		all := stored(t, o.DataDir)
		for name, n := range pages {
			checkVisits(t, name, w.visits[name]())
			fetched := 0
			for u, outcome := range all {
				if strings.Contains(u, "//"+w.zoo.Host(name)) && outcome.State == storage.Fetched {
					fetched++
				}
			}
			assert.Equal(t, fetched, n+1, name, "pages were fetched")
		}
	})
}

// TestFalseWallEnds: if two sections that are closed for good are taken for a wall, the first probe is of a page in a
// section that answered before, and what is open is fetched within minutes.
func TestFalseWallEnds(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		open := paths("/open/", 3)
		routes := testweb.Routes{}
		all := slices.Clone(open)
		for i := range 12 { // one refusal each, right after the first pages
			path := fmt.Sprintf("/dir%d/", i)
			routes[path] = answerWith(403)
			all = append(all, path)
		}
		all = append(all, paths("/open/later/", 20)...)
		web := testweb.Serve(t,
			testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", all, routes)}})
		o := testOptions(t, web)
		o.GiveUpAfter = 24 * time.Hour
		o.Frontier.Politeness.Delay = time.Second
		began := time.Now()
		crawl(t, o, web.URL("a.test", "/"))
		states := stored(t, o.DataDir)
		for _, path := range append(open, paths("/open/later/", 20)...) {
			got := states[web.URL("a.test", path)]
			assert.True(t, got.State == storage.Fetched && got.At.Sub(began) <= 3*time.Minute, "%s is %v after %v",
				path, got.State, got.At.Sub(began))
		}
	})
}

// TestWallsOff: with Walls off a refusal is that of its URL, as ever.
func TestWallsOff(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		w.add(t, "refusal", zoo.Wall{Kind: "refusal", Pages: 40, Open: 15})
		o := w.options(t)
		o.Frontier.Walls = false
		crawl(t, o, w.seeds...)
		failed := 0
		for _, outcome := range stored(t, o.DataDir) {
			if outcome.State == storage.Failed {
				failed++
			}
		}
		n := len(w.visits["refusal"]())
		assert.True(t, failed == 26 && n == 41, "%d URLs failed, and %d requests, want 26 and 41", failed, n)
	})
}

// answerWith answers with a status and a field.
func answerWith(status int, field ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if len(field) == 2 {
			w.Header().Set(field[0], field[1])
		}
		w.WriteHeader(status)
	})
}

// TestWallSweepGoesOn: a sweep whose mark a killed process left is made by the next one.
func TestWallSweepGoesOn(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		refusing := site("a.test", "", []string{"/x", "/y"},
			testweb.Routes{"/x": answerWith(403), "/y": answerWith(404)})
		web := serve(refusing)
		o := testOptions(t, web)
		crawl(t, o, web.URL("a.test", "/"))
		walled := sweep.NewWall(frontier.WallBegun{Host: 1, Kind: wall.KindRefusal, Since: time.Unix(1, 0)})
		commitTo(t, o, func(_ *storage.Store, b *storage.Batch) {
			b.Marks = map[string][]byte{walled.Mark(): walled.Encode()}
		})
		web.SetHandler("a.test", site("a.test", "", []string{"/x", "/y"}, nil).Handler)
		crawl(t, o)
		checkStates(t, o, map[string]storage.State{
			"a.test/": storage.Fetched, "a.test/x": storage.Fetched, "a.test/y": storage.Failed,
		})
	})
}
