package crawl

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// withFields answers as h with fields of the header, given in pairs.
func withFields(h http.Handler, fields ...string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(fields); i += 2 {
			rw.Header().Add(fields[i], fields[i+1])
		}
		h.ServeHTTP(rw, r)
	})
}

// htmlPage answers with a document.
func htmlPage(text string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprint(rw, text)
	})
}

// consentWeb is a site that states preferences in every way.
func consentWeb(serve func(...testweb.Site) *testweb.Web) *testweb.Web {
	const rules = "User-agent: *\nAllow: /\nContent-Usage: train-ai=y\nContent-Usage: /no train-ai=n, search=y\n" +
		"Content-Signal: ai-input=no\n\nLicense: https://l.test/rsl.xml\n"
	return serve(site("a.test", rules, []string{"/no/x", "/header", "/meta"}, testweb.Routes{
		"/header": withFields(htmlPage("<p>words"), "Content-Usage", "train-ai=n", "TDM-Reservation", "0",
			"X-Robots-Tag", "noimageai",
			"Link", `</terms.xml>; rel="license"`),
		"/meta": withFields(htmlPage(`<meta name=tdm-reservation content=1><meta name=robots content=noai>`+
			`<link rel=license type="application/rsl+xml" href=rsl.xml>`), "TDM-Reservation", "0"),
	}), site("b.test", "", nil, nil))
}

// TestUsage looks at the effective preferences in the output, with where each stands.
func TestUsage(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := consentWeb(serve)
		o := testOptions(t, web)
		o.Archive.Formats = []string{archive.FormatJSONL, warcfiles.Name}
		crawl(t, o, web.URL("a.test", "/"), web.URL("b.test", "/"))
		lines := outputLines(t, o.Archive.Dir)
		general := "robots.txt line 3: Content-Usage: train-ai=y"
		signal := archive.Usage{Preference: "n", From: "robots.txt line 5: Content-Signal: ai-input=no"}
		for path, want := range map[string]map[string]archive.Usage{
			"/": {"train-ai": {Preference: "y", From: general}, "ai-input": signal},
			"/no/x": {
				"train-ai": {Preference: "n",
					From: "robots.txt line 4: Content-Usage: /no train-ai=n, search=y"},
				"train-ai-images": {Preference: "n",
					From: "robots.txt line 4: Content-Usage: /no train-ai=n, search=y"},
				"search": {Preference: "y",
					From: "robots.txt line 4: Content-Usage: /no train-ai=n, search=y"},
				"ai-input": signal,
			},
			"/header": {
				"train-ai":        {Preference: "n", From: "header: Content-Usage: train-ai=n"},
				"train-ai-images": {Preference: "n", From: "header: Content-Usage: train-ai=n"},
				"tdm":             {Preference: "y", From: "header: tdm-reservation: 0"},
				"ai-input":        signal,
			},
			"/meta": {
				"train-ai":        {Preference: "n", From: "meta: tdm-reservation: 1"},
				"train-ai-images": {Preference: "n", From: "meta: tdm-reservation: 1"},
				"tdm":             {Preference: "n", From: "meta: tdm-reservation: 1"},
				"ai-input":        signal,
			},
		} {
			if got := lines[web.URL("a.test", path)]; len(got) != 1 || !reflect.DeepEqual(got[0].Usage, want) {
				t.Errorf("%s: %+v\nwant %v", path, got, want)
			}
		}
		for path, want := range map[string][]string{
			"/":       {"https://l.test/rsl.xml"},
			"/header": {"https://l.test/rsl.xml", web.URL("a.test", "/terms.xml")},
			"/meta":   {"https://l.test/rsl.xml", web.URL("a.test", "/rsl.xml")},
		} {
			got := lines[web.URL("a.test", path)]
			assert.True(t, len(got) == 1 && slices.Equal(got[0].Licenses, want), "%s: %+v\nwant %v", path, got, want)
		}
		if got := lines[web.URL("b.test", "/")]; len(got) != 1 || got[0].Usage != nil || got[0].Licenses != nil {
			t.Errorf("a site that states nothing: %+v", got)
		}
		facts := metadata(t, o.Archive.Dir)[web.URL("a.test", "/header")]
		for _, want := range []string{"usage: train-ai=n; header: Content-Usage: train-ai=n\r\n",
			"license: https://l.test/rsl.xml\r\n"} {
			assert.Contains(t, facts, want, "metadata has no")
		}
	})
}

// TestConsentPolicy does not fetch what robots.txt refuses a use of, and does not store what the
// page refuses. A policy that becomes more generous brings it back.
func TestConsentPolicy(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := consentWeb(serve)
		o := testOptions(t, web)
		o.Archive.Formats = []string{archive.FormatJSONL, warcfiles.Name, archive.FormatLinks, archive.FormatText}
		var err error
		o.Consent, err = consent.NewPolicy(map[string]string{"train-ai": "skip-fetching", "tdm": "skip-storing"})
		must.Do(t, err)
		crawl(t, o, web.URL("a.test", "/"))
		r := &running{t: t, web: web}
		if n := r.pages("a.test"); n != 6 { // with the TDM file and two terms, which the policy needs
			t.Errorf("%d pages were requested, want 6", n)
		}
		outcomes, lines, archived := stored(t, o.DataDir), outputLines(t, o.Archive.Dir), archived(t, o.Archive.Dir)
		got := outcomes[web.URL("a.test", "/no/x")]
		assert.True(t, got.State == storage.Denied && got.Reason == storage.ReasonUsage, "/no/x is %+v", got)
		for path, isStored := range map[string]bool{"/": true, "/header": false, "/meta": false} {
			u := web.URL("a.test", path)
			if got := outcomes[u]; got.State != storage.Fetched || (got.Reason == storage.ReasonUsage) == isStored {
				t.Errorf("%s is %+v", path, got)
			}
			if got := lines[u]; len(got) != 1 || (got[0].Reason == "usage") == isStored || got[0].Usage == nil {
				t.Errorf("the line of %s is %+v", path, got)
			}
			assert.Equal(t, (len(archived[u]) > 0), isStored, path, "has", len(archived[u]), "records")
		}
		o.Consent = consent.Policy{}
		crawl(t, o, web.URL("a.test", "/"))
		assert.Equal(t, stored(t, o.DataDir)[web.URL("a.test", "/no/x")].State, storage.Fetched,
			"without a policy /no/x")
	})
}

// keptUsage reads the preferences that the store keeps of a URL.
func keptUsage(t *testing.T, o storage.Outcome) string {
	t.Helper()
	list := must.Get(consent.Kept(o.Usage))(t)
	var all []string
	for _, s := range list {
		all = append(all, s.Preferences.String()+" "+s.From())
	}
	return strings.Join(all, "; ")
}
