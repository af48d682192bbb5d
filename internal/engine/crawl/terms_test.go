package crawl

import (
	"fmt"
	"testing"

	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// rsl is a document of terms about a path.
func rsl(path, terms string) string {
	const text = `<rsl xmlns="https://rslstandard.org/rsl"><content url="%s"><license>%s</license></content></rsl>`
	return fmt.Sprintf(text, path, terms)
}

const noTraining = `<prohibits type="usage">ai-train</prohibits>`

// TestTerms: the terms that a robots.txt, a header, a link and a page itself name are in the record of each page that
// they cover, also after a restart. Those of the robots.txt come before the pages, and those of another host are not
// requested.
func TestTerms(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		pages := []string{"/art/x", "/other", "/header", "/link", "/script"}
		link := func(to string) string { return `<link rel=license type="application/rsl+xml" href="` + to + `">` }
		routes := testweb.Routes{
			"/rsl.xml":    withFields(htmlPage(rsl("/art/", noTraining)), "Content-Type", consent.TermsType),
			"/header.xml": htmlPage(rsl("", `<permits type="usage">search</permits>`)),
			"/link.xml":   htmlPage(rsl("", "<prohibits type='usage'>search</prohibits>")),
			"/header":     withFields(htmlPage("<p>words"), "Link", `</header.xml>; rel="license"`),
			"/link":       htmlPage(link("link.xml") + link("http://b.test/rsl.xml") + "<p>words"),
			"/second":     htmlPage(link("/link.xml") + "<p>words"),
			"/script":     htmlPage(`<script type="application/rsl+xml">` + rsl("", noTraining) + "</script><p>words"),
		}
		web := serve(site("a.test", "", pages, routes), site("b.test", "", nil, nil))
		robots := "User-agent: *\nAllow: /\n\nLicense: " + web.URL("a.test", "/rsl.xml") +
			"\nLicense: http://b.test/rsl.xml\n"
		web.SetHandler("a.test", site("a.test", robots, pages, routes).Handler)
		o := testOptions(t, web)
		o.Terms, o.MaxPages = true, 3 // the rest of the pages are for another process
		crawl(t, o, web.URL("a.test", "/"))
		o.MaxPages = 0
		crawl(t, o, web.URL("a.test", "/"), web.URL("a.test", "/header"))
		crawl(t, o, web.URL("a.test", "/second"))
		log := web.Requests().Host("a.test")
		assert.True(t, log[1].Path == "/rsl.xml" && len(log.Path("/rsl.xml")) == 1,
			"the second request is for %s, and %d are for the terms", log[1].Path, len(log.Path("/rsl.xml")))
		assert.AtMost(t, len(web.Requests().Host("b.test")), 0, "requests to a host that only terms name")
		outcomes, lines := stored(t, o.DataDir), outputLines(t, o.Archive.Dir)
		const no = "train-ai=n %[1]s license; train-ai-images=n %[1]s license"
		for path, want := range map[string]string{
			"/": "", "/other": "", "/art/x": fmt.Sprintf(no, "robots.txt"), "/script": fmt.Sprintf(no, "meta"),
			"/second": "search=n meta license", // known since the crawl before
		} {
			assert.Equal(t, keptUsage(t, outcomes[web.URL("a.test", path)]), want, path)
		}
		text := "robots.txt license: " + web.URL("a.test", "/rsl.xml") + " prohibits ai-train"
		got := lines[web.URL("a.test", "/art/x")]
		assert.True(t, len(got) == 1 && got[0].Usage["train-ai"].From == text, "line %+v, want %q", got, text)
		if got := lines[web.URL("a.test", "/rsl.xml")]; len(got) != 1 || got[0].Kind != "rsl" {
			t.Errorf("the line of the terms is %+v", got)
		}
		// Terms that a page names are fetched after it.
		for _, path := range []string{"/header", "/link"} {
			assert.Equal(t, outcomes[web.URL("a.test", path+".xml")].State, storage.Fetched, path, "xml")
		}
	})
}

// TestTermsOfPolicy: a policy about a use that terms decide reads them, and pages that they refuse are not requested,
// whatever the delay; by default nobody requests terms.
func TestTermsOfPolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string][2]int{
		"search=skip-fetching": {1, 0}, "ai-input=skip-fetching": {1, 1}, "": {0, 1},
	} {
		web := testweb.Serve(t, testweb.Config{Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		pages := []string{"/art/1", "/art/2", "/art/3"}
		web.SetHandler("a.test", site("a.test", "License: "+web.URL("a.test", "/rsl.xml")+"\n", pages, testweb.Routes{
			"/rsl.xml": htmlPage(rsl("/art/*", "<prohibits type='usage'>search</prohibits>")),
		}).Handler)
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay, o.Frontier.Politeness.PerHost = 0, 4
		if policy != "" {
			o.Consent = policyOf(t, policy)
		}
		crawl(t, o, web.URL("a.test", "/"), web.URL("a.test", "/art/1"), web.URL("a.test", "/art/2"))
		log := web.Requests().Host("a.test")
		assert.Equal(t, [2]int{len(log.Path("/rsl.xml")), len(log.Path("/art/1"))}, want, policy,
			"requests for the terms for a page")
	}
}
