package crawl

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// recrawling are the options of a crawl that visits its pages every second.
func recrawling(t *testing.T, web *testweb.Web) Options {
	o := testOptions(t, web)
	o.ExitWhenDone = false
	o.Archive.Formats = []string{archive.FormatNone}
	r := recrawl.DefaultOptions()
	r.Min, r.Max, r.Budget = time.Second, time.Second, 0
	o.Recrawl = &r
	return o
}

// paragraph is a text that is long enough for a few words not to count.
var paragraph = strings.Repeat(
	"The keeper of the lighthouse wrote down wind, tide and every ship that passed, and went to bed at dawn. ", 3)

func body(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<html><body><p>%s</p></body></html>", text)
	})
}

// changingSite is a host with a page of each kind.
func changingSite() testweb.Site {
	var visits, counter, conditional atomic.Int64
	return testweb.Site{Host: "a.test", Handler: testweb.Routes{
		"/robots.txt": testweb.Robots(""),
		"/":           testweb.Page("all", "/same", "/changing", "/counter", "/validated", "/gone"),
		"/same":       body(paragraph),
		"/changing": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body(
				[]string{paragraph,
					"All of it is another story now, which nobody had told before, in other words."}[visits.Add(
					1)%2]).ServeHTTP(w, r)
		}),
		"/counter": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body(fmt.Sprintf("%s You are visitor %d.", paragraph, counter.Add(1))).ServeHTTP(w, r)
		}),
		"/validated": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"v"`)
			if r.Header.Get("If-None-Match") == `"v"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			body(fmt.Sprintf("%s %d", paragraph, conditional.Add(1))).ServeHTTP(w, r)
		}),
		"/gone": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if visits.Load() > 1 {
				http.NotFound(w, r)
				return
			}
			body("here").ServeHTTP(w, r)
		}),
	}}
}

// lastOutcomes are what the store knows of each URL of a data directory, by path.
func lastOutcomes(t *testing.T, dir string) map[string]storage.Outcome {
	t.Helper()
	s := must.Get(storage.Open(dir, storage.Options{ReadOnly: true}))(t)
	defer s.Close()
	all := map[string]storage.Outcome{}
	must.Get(s.Walk(context.Background(), storage.Position{}, 0, func(l *storage.Located) error {
		all[l.URL().RequestURI()] = l.Last
		return nil
	}))(t)
	return all
}

// TestRecrawls: pages are requested again, with what they said to be the same by, and what each
// visit finds is remembered.
func TestRecrawls(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{changingSite()}})
		o := recrawling(t, web)
		o.Archive.Formats = []string{"jsonl"}
		wanted := map[string]recrawl.Change{"/same": recrawl.Same, "/changing": recrawl.Changed,
			"/counter": recrawl.Same, "/validated": recrawl.Same}
		const seconds = 6
		must.Get(crawlFor(t, o, seconds*time.Second, web.URL("a.test", "/")))(t)
		all := lastOutcomes(t, o.DataDir)
		for path, want := range wanted {
			got := all[path]
			seen := recrawl.History(got.History).Observations()
			if got.State != storage.Fetched || got.Due.IsZero() || len(seen) < 2 {
				t.Errorf("%s: %+v with %d observations", path, got, len(seen))
				continue
			}
			if oldest := len(seen) - 1; path == "/counter" && seen[oldest].Change == recrawl.Changed {
				seen = seen[:oldest] // its text was not kept before it changed
			}
			for _, o := range seen {
				assert.Equal(t, o.Change, want, path, "observed", seen)
			}
		}
		checkChanges(t, o, wanted)
		got := all["/validated"]
		assert.True(t, got.Status == 304 && got.ETag == `"v"` && got.Digest != 0 && got.Stamp != 0 && got.Bytes != 0,
			"a page that says to be the same: %+v", got)
		if got := all["/gone"]; got.State != storage.Failed || got.Status != 404 || got.Attempts < 1 ||
			!got.Due.After(got.At) || got.Digest == 0 {
			t.Errorf("a page that is gone: %+v", got)
		}
		assert.AtMost(t, int(web.ServedBy("a.test")), seconds*15/2, "requests in", seconds,
			"seconds for six pages, each second at most")
	})
}

// checkChanges: each line but the first of a page says whether it has changed, and the digest of the line before.
func checkChanges(t *testing.T, o Options, wanted map[string]recrawl.Change) {
	t.Helper()
	compared := 0
	for text, lines := range outputLines(t, o.Archive.Dir) {
		at := must.Get(url.Parse(text))(t)
		want, known := wanted[at.Path]
		before := ""
		for i, l := range lines {
			switch {
			case !known:
			case i == 0 && (l.Changed != nil || l.DigestBefore != ""):
				t.Errorf("%s: the first line has digest_before %q", at.Path, l.DigestBefore)
			case i > 0:
				compared++
				if l.Changed == nil || *l.Changed != (want == recrawl.Changed) && at.Path != "/counter" ||
					len(l.DigestBefore) != len("sha256:")+16 || !strings.HasPrefix(before, l.DigestBefore) {
					t.Errorf("%s: %+v after %s", at.Path, l, before)
				}
			}
			before = cmp.Or(l.Digest, before) // a 304 has none
		}
	}
	assert.AtLeast(t, compared, 8, "only lines of recrawls")
}

// TestRestartKeepsTheSchedule: the end of a process, and the start of another, change nobody's time.
func TestRestartKeepsTheSchedule(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{changingSite()}})
		o := recrawling(t, web)
		o.Recrawl.Max = 90 * 24 * time.Hour
		planned := func(all map[string]storage.Outcome) (n int) {
			for _, got := range all {
				if !got.Due.IsZero() {
					n++
				}
			}
			return n
		}
		must.Get(crawlFor(t, o, 1500*time.Millisecond, web.URL("a.test", "/")))(t)
		before := lastOutcomes(t, o.DataDir)
		if n := planned(before); n != 6 || len(before) != 6 {
			t.Fatalf("%d of %d pages have a recrawl to come, want 6: %+v", n, len(before), before)
		}
		e := must.Get(Open(o, testLog(t)))(t)
		assert.Equal(t, e.plan.Pages(), len(before), "pages are on the plan after a restart, there")
		must.Do(t, e.Close())
		must.Get(crawlFor(t, o, time.Second, web.URL("a.test", "/")))(t)
		assert.Deep(t, before, lastOutcomes(t, o.DataDir), "before after a restart")
	})
}

// TestAdoption: pages that a run without a plan has fetched are visited again by one that has a plan.
func TestAdoption(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{changingSite()}})
		o := recrawling(t, web)
		plan := o.Recrawl
		o.Recrawl, o.ExitWhenDone = nil, true
		must.Get(crawlFor(t, o, 10*time.Second, web.URL("a.test", "/")))(t)
		for path, got := range lastOutcomes(t, o.DataDir) {
			assert.True(t, got.Due.IsZero() && got.History == (recrawl.History{}), "%s is planned: %+v", path, got)
		}
		o.Recrawl, o.ExitWhenDone = plan, false
		must.Get(crawlFor(t, o, 3*time.Second, web.URL("a.test", "/")))(t)
		for path, got := range lastOutcomes(t, o.DataDir) {
			if got.Due.IsZero() || path == "/same" && len(recrawl.History(got.History).Observations()) == 0 {
				t.Errorf("%s was not visited again: %+v", path, got)
			}
		}
	})
}

// TestNotice: a sitemap that says that a page has changed brings its visit forward, once.
func TestNotice(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		var lists, visits atomic.Int64
		site := testweb.Site{Host: "a.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots("Sitemap: /sitemap.xml"),
			"/":           testweb.Page("all"),
			"/page": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body(fmt.Sprint(strings.Repeat("new words ", int(visits.Add(1))),
					paragraph[visits.Load()*20:])).ServeHTTP(w, r)
			}),
			"/sitemap.xml": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/xml")
				fmt.Fprintf(w,
					`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://%s/page</loc><lastmod>%s</lastmod></url><!-- %d --></urlset>`,
					r.Host, time.Now().UTC().Format(time.RFC3339), lists.Add(1))
			}),
		}}
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site}})
		o := recrawling(t, web)
		o.Recrawl.Max, o.Recrawl.Interval = 90*24*time.Hour, time.Hour
		o.Recrawl.Rules = []recrawl.Rule{{Hosts: []string{"a.test"}, Pattern: regexp.MustCompile(`^/sitemap`),
			Policy: recrawl.Fixed, Interval: time.Second, Min: time.Second, Max: time.Second}}
		must.Get(crawlFor(t, o, 5*time.Second, web.URL("a.test", "/")))(t)
		got := lastOutcomes(t, o.DataDir)["/page"]
		assert.True(t, lists.Load() >= 3 && visits.Load() == 1,
			"the sitemap was read %d times, the page %d times; within an hour half of its wait has to pass",
			lists.Load(), visits.Load())
		assert.True(t, recrawl.History(got.History).Noticed(), "the notice is not noted: %+v", got)
	})
}

// TestHeavyGonePagesAreFetchedWhenListed: a page that was not there once is fetched again as soon as its
// sitemap gives reason to, not after a day whatever that says: one that a sitemap names for the
// first time after it was requested, and one that is said to change every hour.
func TestHeavyGonePagesAreFetchedWhenListed(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{}, func(t *testing.T, network *memnet.Network) {
		began := time.Now()
		var visits sync.Map // path: times of visits, by hour
		there := func(path string, is func(hour float64) bool) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				hour := time.Since(began).Hours()
				all, _ := visits.LoadOrStore(path, []float64(nil))
				visits.Store(path, append(all.([]float64), math.Floor(hour)))
				if is(hour) {
					body(paragraph).ServeHTTP(w, r)
				} else {
					testweb.Status(http.StatusNotFound).ServeHTTP(w, r)
				}
			})
		}
		routes := testweb.Routes{
			"/robots.txt": testweb.Robots("Sitemap: /sitemap.xml"),
			"/":           testweb.Page("all", "/late", "/unlisted"),
			"/late":       there("/late", func(hour float64) bool { return hour > 1 }),
			"/unlisted":   there("/unlisted", func(hour float64) bool { return hour > 1 }),
			"/away":       there("/away", func(hour float64) bool { return hour < 5 || hour > 7 }),
			"/sitemap.xml": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/xml")
				item := func(path, more string) {
					fmt.Fprintf(w, "<url><loc>http://%s%s</loc>%s</url>", r.Host, path, more)
				}
				fmt.Fprint(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
				item("/away", "<changefreq>hourly</changefreq>")
				if time.Since(began) > 2*time.Hour {
					item("/late", "<lastmod>"+began.Add(90*time.Minute).UTC().Format(time.RFC3339)+"</lastmod>")
				}
				fmt.Fprint(w, "</urlset>")
			}),
		}
		web := testweb.Serve(t,
			testweb.Config{Network: network, Sites: []testweb.Site{{Host: "a.test", Handler: routes}}})
		o := recrawling(t, web)
		fixed := func(pattern string, every time.Duration) recrawl.Rule {
			r := recrawl.Rule{Policy: recrawl.Fixed, Interval: every, Min: time.Hour, Max: every}
			r.Pattern = regexp.MustCompile(pattern)
			return r
		}
		o.Recrawl.Min, o.Recrawl.Max = time.Hour, 1000*time.Hour
		o.Recrawl.Rules = []recrawl.Rule{
			fixed("^/sitemap", time.Hour), fixed("^/away", 6*time.Hour), fixed("", 240*time.Hour),
		}
		must.Get(crawlFor(t, o, 12*time.Hour+10*time.Minute, web.URL("a.test", "/")))(t)
		for path, want := range map[string][]float64{
			"/late":     {0, 12}, // half of a day, because half of the site's news are believed to be true
			"/unlisted": {0},
			"/away":     {0, 6, 9},
		} {
			if got, _ := visits.Load(path); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s was requested in the hours %v, want %v", path, got, want)
			}
		}
	})
}

// TestNoticeOfCrashedPage: news of a page at which amble panicked does not bring another visit.
func TestNoticeOfCrashedPage(t *testing.T) {
	plan := recrawl.DefaultOptions()
	o := Options{Recrawl: &plan}
	must.Do(t, newPlan(&o))
	for reason, want := range map[storage.Reason]bool{storage.ReasonStatus: true, storage.ReasonCrash: false} {
		n := storage.Noticed{Host: "a.test", URI: "/", At: time.Now(), Modified: time.Now().Add(-time.Minute)}
		n.Last = storage.Outcome{State: storage.Failed, Reason: reason, At: n.At.Add(-48 * time.Hour)}
		_, _, ok := o.Storage.Notice(n)
		assert.True(t, ok == want, "reason %d: noticed %t, want %t", reason, ok, want)
	}
}
