package crawl

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestBareSeeds crawls hosts without https whose seeds were given as hosts. Once the http form of a seed has been
// answered, the run ends: the https form has failed. If http leads back to https, that stays queued.
func TestBareSeeds(t *testing.T) {
	for name, c := range map[string]struct {
		robots    string
		again     bool // the run may last until https is tried again
		root      http.Handler
		known     bool // an earlier run has fetched the http form
		leadsBack bool
		want      storage.State
		postponed int
	}{
		"fetched": {root: testweb.Page("a"), want: storage.Failed},
		"known":   {root: testweb.Page("a"), known: true, want: storage.Failed},
		"denied": {
			robots: "User-agent: *\nDisallow: /$\n", again: true, root: testweb.Page("a"), want: storage.Failed,
		},
		"not found":  {root: testweb.Status(404), want: storage.Failed},
		"leads back": {leadsBack: true, again: true, want: storage.Queued, postponed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
				routes := testweb.Routes{"/robots.txt": testweb.Robots(c.robots), "/": c.root}
				web := serve(testweb.Site{Host: "a.test", Handler: routes})
				plain := web.URL("a.test", "/")
				_, bare, _ := strings.Cut(plain, "://")
				if c.leadsBack {
					routes["/"] = testweb.Redirect(301, "https://"+bare)
				}
				o := testOptions(t, web)
				if o.GiveUpAfter = 10 * time.Second; c.again {
					o.GiveUpAfter = time.Hour
				}
				if c.known {
					crawl(t, o, plain)
				}
				e := must.Get(Open(o, testLog(t)))(t)
				sum := must.Get(e.Run(t.Context(), []Seed{givenAs(t, bare)}))(t)
				assert.Equal(t, len(sum.Postponed), c.postponed, "postponed hosts")
				head, _, err := e.store.Lookup(parse(t, "https://"+bare))
				must.Do(t, err)
				assert.Equal(t, head.Last.State, c.want)
				must.Do(t, e.Close())
			})
		})
	}
}
