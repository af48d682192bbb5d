package crawl

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/memnet"
	"github.com/amble-crawler/amble/internal/testweb"
	"github.com/amble-crawler/amble/internal/zoo"
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
	return &wallWeb{
		zoo: newZoo(t, network), web: serveWeb(t, testweb.Config{Network: network}),
		visits: make(map[string]func() []zoo.Visit),
	}
}

// add adds a host.
func (w *wallWeb) add(t *testing.T, name string, wall zoo.Wall) {
	t.Helper()
	visits, err := w.zoo.AddWall(name, wall)
	if err != nil {
		t.Fatal(err)
	}
	w.visits[name] = visits
	w.web.SetAnswer(w.zoo.Host(name), w.zoo.Address(name))
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
// wall before it is seen, and then one a period of a backoff that doubles.
func checkVisits(t *testing.T, name string, visits []zoo.Visit) {
	t.Helper()
	early, probes, last := 0, 0, time.Duration(0)
	for i, v := range visits {
		if !v.Refused {
			continue
		}
		gap := v.At.Sub(visits[i-1].At)
		if probes == 0 && gap < usual {
			early++
			continue
		}
		least := min(max(time.Minute, 2*last*4/5), 24*time.Hour) // a backoff is up to a quarter longer at random
		if gap < least {
			t.Errorf("%s: probe %d came %v after the request before, want %v at least", name, probes+1, gap, least)
		}
		probes, last = probes+1, gap
	}
	if early > 10 || probes == 0 {
		t.Errorf("%s: %d requests into the wall before it was seen, and %d probes", name, early, probes)
	}
}

// TestWalls: of each kind of wall the crawl sees few refusals, then probes it once in each period, and
// when the wall ends it fetches every page. What the wall sent is no page, and its links are not
// followed once it was seen.
func TestWalls(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		for _, kind := range zoo.WallKinds() {
			w.add(t, kind, zoo.Wall{Kind: kind, Pages: 40, Open: 15, Lasts: 20 * time.Minute})
		}
		o := w.options(t)
		crawl(t, o, w.seeds...)
		all, lines := stored(t, o.DataDir), outputLines(t, o.Archive.Dir)
		for _, kind := range zoo.WallKinds() {
			visits := w.visits[kind]()
			checkVisits(t, kind, visits)
			pages := 0
			for u, outcome := range all {
				switch {
				case !strings.Contains(u, "//"+w.zoo.Host(kind)):
				case strings.HasSuffix(u, "/of-the-wall"):
					if kind != "same-document" && kind != "soft-block" && kind != "challenge-page" {
						t.Errorf("%s: a link of the wall was followed", kind)
					}
				default:
					pages++
					got := lines[u]
					if outcome.State != storage.Fetched || outcome.Status != 200 || len(got) == 0 ||
						got[len(got)-1].Status != 200 || got[len(got)-1].Reason != "" {
						t.Errorf("%s: %s is %+v, and its lines are %+v", kind, u, outcome, got)
					}
				}
			}
			last := make(map[string]bool) // the last visit of each page was no refusal
			for _, v := range visits {
				last[v.Target] = !v.Refused
			}
			for target, ok := range last {
				if !ok && target != "/of-the-wall" {
					t.Errorf("%s: %s was refused the last time", kind, target)
				}
			}
			if pages != 41 {
				t.Errorf("%s: %d pages, want 41", kind, pages)
			}
		}
	})
}

// TestWallsCostOthersNothing: hosts without a wall are crawled as fast as they were where a third of
// the hosts put one up midway.
func TestWallsCostOthersNothing(t *testing.T) {
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
	if pages != 8*41 || same != pages || with > without+without/50 {
		t.Errorf("the others have %d requests in %v, and %d in %v without walls", same, with, pages, without)
	}
}

// TestWallSurvives: backoff, parking and the put-back of URLs go on after a restart.
func TestWallSurvives(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		w := newWallWeb(t, network)
		w.add(t, "refusal", zoo.Wall{Kind: "refusal", Pages: 40, Open: 15, Lasts: 100 * time.Hour})
		o := w.options(t)
		for _, limit := range []time.Duration{90 * time.Second, 10 * time.Minute, 30 * time.Minute, 3 * time.Hour, 50 * time.Hour} {
			if _, err := crawlFor(t, o, limit, w.seeds...); err != nil {
				t.Fatal(err)
			}
		}
		crawl(t, o, w.seeds...)
		visits := w.visits["refusal"]()
		checkVisits(t, "refusal", visits)
		daily := 0
		for i := range visits[1:] {
			if visits[i+1].At.Sub(visits[i].At) >= 24*time.Hour {
				daily++
			}
		}
		refused := len(slices.DeleteFunc(visits, func(v zoo.Visit) bool { return !v.Refused }))
		if daily < 3 || refused > 22 {
			t.Errorf("%d gaps of a day, and %d refusals in 100 hours", daily, refused)
		}
		for u, outcome := range stored(t, o.DataDir) {
			if outcome.State != storage.Fetched {
				t.Errorf("%s is %+v", u, outcome)
			}
		}
	})
}
