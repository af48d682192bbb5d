package crawl

import (
	"testing"

	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestNoArchive: a page that says noarchive is in no web archive, unless the policy says that it is recorded, and in
// the lines of pages all the same.
func TestNoArchive(t *testing.T) {
	t.Parallel()
	for policy, kept := range map[string]bool{"": false, "archive=record": true, "index=record": false} {
		inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
			web := serve(site("a.test", "", []string{"/one"}, testweb.Routes{
				"/one": withFields(htmlPage("<p>words"), "X-Robots-Tag", "noarchive"),
			}))
			o := testOptions(t, web)
			o.Archive.Formats = []string{archive.FormatJSONL, warcfiles.Name}
			if o.Consent = consent.DefaultPolicy(); policy != "" {
				o.Consent = policyOf(t, policy)
			}
			crawl(t, o, web.URL("a.test", "/"))
			lines, archived := outputLines(t, o.Archive.Dir), archived(t, o.Archive.Dir)
			for path, want := range map[string]bool{"/": true, "/one": kept} {
				u := web.URL("a.test", path)
				assert.True(t, len(lines[u]) == 1 && len(archived[u]) > 0 == want, "%q: %s has %d lines and %d records",
					policy, path, len(lines[u]), len(archived[u]))
			}
		})
	}
}

// TestDirectivesOfPolicy: the content of a page that says noarchive, noindex, nosnippet or a past
// unavailable_after is not stored, if the policy says so of that category, and of no other.
func TestDirectivesOfPolicy(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"/archive": "noarchive", "/index": "noindex", "/none": "none", "/snippet": "nosnippet",
		"/past":   "unavailable_after: 25 Jun 1999 15:00:00 GMT",
		"/future": "unavailable_after: 25 Jun 2099 15:00:00 GMT",
	}
	for category, refused := range map[string][]string{
		"archive": {"/archive"}, "index": {"/index", "/none", "/past"}, "snippet": {"/snippet"},
	} {
		t.Run(category, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				routes, paths := testweb.Routes{}, []string{}
				for path, directive := range pages {
					paths = append(paths, path)
					routes[path] = withFields(htmlPage("<p>words"), "X-Robots-Tag", directive)
				}
				web := serve(site("a.test", "", paths, routes))
				o := testOptions(t, web)
				var err error
				o.Consent, err = consent.NewPolicy(map[string]string{category: "skip-storing"})
				must.True(t, err == nil, "%v", err)
				crawl(t, o, web.URL("a.test", "/"))
				skipped := make(map[string]bool)
				for u, outcome := range stored(t, o.DataDir) {
					skipped[u] = outcome.Reason == storage.ReasonUsage
				}
				for _, path := range refused {
					assert.True(t, skipped[web.URL("a.test", path)], "%s is stored", path)
					delete(skipped, web.URL("a.test", path))
				}
				for u, skip := range skipped {
					assert.True(t, !skip, "%s is not stored", u)
				}
			})
		})
	}
}
