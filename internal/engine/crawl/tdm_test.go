package crawl

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// tdmFile answers with a TDM file, and with 304 if the client has it.
func tdmFile(text string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Etag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(rw, text)
	})
}

// tdmWeb is a site with a TDM file, one whose robots.txt forbids it, and one whose file is none.
func tdmWeb(t *testing.T, network *memnet.Network) *testweb.Web {
	return testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{
		site("a.test", "", []string{"/art/x", "/free/x", "/other"}, testweb.Routes{
			consent.TDMFilePath: tdmFile(`[{"location": "/art/", "tdm-reservation": 1},
			{"location": "/free/*", "tdm-reservation": 0}]`),
		}), site("b.test", "User-agent: *\nDisallow: /.well-known/\n", []string{"/art/x"}, testweb.Routes{
			consent.TDMFilePath: tdmFile(`[{"location": "/", "tdm-reservation": 1}]`),
		}),
		site("c.test", "", []string{"/art/x"},
			testweb.Routes{consent.TDMFilePath: htmlPage("<a href=/not-followed>")})}})
}

// tdmOptions are those of a crawl in virtual time.
func tdmOptions(t *testing.T, web *testweb.Web) Options {
	o := testOptions(t, web)
	o.Frontier.Politeness.Delay, o.GiveUpAfter = 10*time.Second, time.Hour
	return o
}

// TestTDMFile: the file is one request of an origin, after its robots.txt, before its pages, and
// within the delay. What it says is among the preferences of the pages, also after a restart.
func TestTDMFile(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: 50 * time.Millisecond}, checkTDMFile)
}

func checkTDMFile(t *testing.T, network *memnet.Network) {
	web := tdmWeb(t, network)
	o := tdmOptions(t, web)
	o.TDMFiles = true
	o.MaxPages = 5 // with the files; so some pages are left for another process
	seeds := []string{web.URL("a.test", "/"), web.URL("b.test", "/"), web.URL("c.test", "/")}
	crawl(t, o, seeds...)
	o.MaxPages = 0
	crawl(t, o, seeds...)
	for host, want := range map[string]int{"a.test": 1, "b.test": 0, "c.test": 1} {
		log := web.Requests().Host(host)
		assert.Equal(t, len(log.Path(consent.TDMFilePath)), want, host, "requests for the TDM file")
		if want > 0 && log[1].Path != consent.TDMFilePath {
			t.Errorf("%s: the second request is for %s", host, log[1].Path)
		}
	}
	checkPolite(t, web.Requests(), o.Frontier.Politeness.Delay)
	checkLogged(t, o.DataDir, web.Requests())
	outcomes, lines := stored(t, o.DataDir), outputLines(t, o.Archive.Dir)
	const rule = "tdmrep.json rule "
	for u, want := range map[string]string{
		web.URL("a.test", "/art/x"):  "train-ai=n " + rule + "1; train-ai-images=n " + rule + "1; tdm=n " + rule + "1",
		web.URL("a.test", "/free/x"): "tdm=y " + rule + "2",
		web.URL("a.test", "/other"):  "", web.URL("b.test", "/art/x"): "", web.URL("c.test", "/art/x"): "",
	} {
		assert.Equal(t, keptUsage(t, outcomes[u]), want, u)
		assert.True(t, want != "" || outcomes[u].Usage == "", "%s states nothing and takes %d bytes", u,
			len(outcomes[u].Usage))
	}
	want := archive.Usage{Preference: "n", From: rule + "1: tdm-reservation: 1"}
	got := lines[web.URL("a.test", "/art/x")]
	assert.True(t, len(got) == 1 && got[0].Usage["tdm"] == want, "line %+v", got)
	if got := lines[web.URL("a.test", consent.TDMFilePath)]; len(got) != 1 || got[0].Kind != "tdmrep" {
		t.Errorf("the line of the file is %+v", got)
	}
	_, known := outcomes[web.URL("c.test", "/not-followed")]
	assert.True(t, !known, "links of a response for a TDM file are followed")
	assert.Equal(t, outcomes[web.URL("b.test", consent.TDMFilePath)].State, storage.Denied,
		"a file that robots.txt forbids")
}

// TestTDMFileComesFirst: the file is requested, and its response is there, before any page of its origin is requested,
// also where nothing else separates the requests and with many pages in memory already; by setting and by policy.
func TestTDMFileComesFirst(t *testing.T) {
	t.Parallel()
	file := tdmFile(`[{"location": "/", "tdm-reservation": 1}]`)
	var sites []testweb.Site
	var paths []string
	for i := range 40 {
		paths = append(paths, fmt.Sprintf("/p%d", i))
	}
	for i := range 8 {
		sites = append(sites, site(fmt.Sprintf("h%d.test", i), "", paths, testweb.Routes{consent.TDMFilePath: file}))
	}
	for _, c := range []struct {
		policy string // "": the setting
		delay  time.Duration
	}{{"train-ai=skip-fetching", 0}, {"", 0}, {"", time.Millisecond}} {
		web := testweb.Serve(t, testweb.Config{Sites: sites})
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay, o.TDMFiles = c.delay, c.policy == ""
		pages := len(paths)
		if c.delay == 0 {
			o.Frontier.Politeness.PerHost = 4
		}
		if c.policy != "" {
			o.Consent, pages = policyOf(t, c.policy), 0
		}
		var seeds []string
		for i := range sites {
			for _, path := range paths {
				seeds = append(seeds, web.URL(sites[i].Host, path))
			}
		}
		crawl(t, o, seeds...)
		for i := range sites {
			log := web.Requests().Host(sites[i].Host)
			first := log.Path(consent.TDMFilePath)
			must.True(t, len(first) == 1 && len(log) == 2+pages, "%v: %d requests, %d of them for the file",
				c, len(log), len(first))
			for _, r := range log {
				if r.Path != "/robots.txt" && r.Path != consent.TDMFilePath && r.Start.Before(first[0].End) {
					t.Errorf("%v: a request for %s before the file was there", c, r.Path)
				}
			}
		}
	}
}

// policyOf returns a policy in the form of the setting.
func policyOf(t *testing.T, text string) consent.Policy {
	t.Helper()
	category, action, _ := strings.Cut(text, "=")
	return must.Get(consent.NewPolicy(map[string]string{category: action}))(t)
}

// TestTDMPolicy: a policy about training reads the files by itself, and keeps what they refuse from
// being fetched; one about nothing of that kind makes no request.
func TestTDMPolicy(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: 50 * time.Millisecond}, checkTDMPolicy)
}

func checkTDMPolicy(t *testing.T, network *memnet.Network) {
	for policy, requests := range map[string]int{"train-ai=skip-fetching": 1, "search=skip-fetching": 0} {
		web := tdmWeb(t, network)
		o := tdmOptions(t, web)
		o.Consent = policyOf(t, policy)
		crawl(t, o, web.URL("a.test", "/"))
		log := web.Requests().Host("a.test")
		assert.Equal(t, len(log.Path(consent.TDMFilePath)), requests, policy, "requests for the TDM file")
		assert.Equal(t, len(log.Path("/art/x")), 1-requests, policy, "requests for a refused page")
		assert.Equal(t, (stored(t, o.DataDir)[web.URL("a.test", "/art/x")].Reason == storage.ReasonUsage),
			(requests > 0), policy, "a refused page")
	}
}

// TestTDMFileIsFetchedAgain: when the robots.txt is fetched again a day later, the file is too; a
// 304 keeps it, a 404 ends it, and a failure changes nothing.
func TestTDMFileIsFetchedAgain(t *testing.T) {
	t.Parallel()
	virtually(t, memnet.Options{Latency: 50 * time.Millisecond}, checkTDMFileIsFetchedAgain)
}

func checkTDMFileIsFetchedAgain(t *testing.T, network *memnet.Network) {
	web := tdmWeb(t, network)
	o := tdmOptions(t, web)
	o.TDMFiles = true
	u := web.URL("a.test", consent.TDMFilePath)
	crawl(t, o, web.URL("a.test", "/"))
	for i, test := range []struct {
		answer http.Handler
		status int
		kept   bool
	}{{nil, 304, true}, {testweb.Status(404), 404, false},
		{tdmFile(`[{"location": "/", "tdm-reservation": 1}]`), 200, true}} {
		time.Sleep(25 * time.Hour)
		now := time.Now().Truncate(time.Second)
		if test.answer != nil {
			web.SetHandler("a.test", site("a.test", "", nil, testweb.Routes{consent.TDMFilePath: test.answer}).Handler)
		}
		crawl(t, o, web.URL("a.test", fmt.Sprintf("/new%d", i)))
		got := stored(t, o.DataDir)[u]
		assert.True(t, int(got.Status) == test.status && !got.At.Before(now),
			"%d days later the file is %+v, want status %d", i+1, got, test.status)
		s := must.Get(storage.Open(o.DataDir, storage.Options{ReadOnly: true}))(t)
		mark, err := s.Mark(marks.TDM + parse(t, u).Origin().String())
		assert.True(t, err == nil && (mark != nil) == test.kept, "after %d the mark is %s, %v", test.status, mark, err)
		s.Close()
	}
}
