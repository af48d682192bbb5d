package crawl

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// TestDeadSeeds: the status counts the seeds that nothing will come of, and says why. One that comes back to life is
// among them no more, nor is one that is removed.
func TestDeadSeeds(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(
			site("fine.test", "", nil, testweb.Routes{"/": testweb.Page("fine", "/missing")}),
			site("gone.test", "", nil, testweb.Routes{"/": testweb.Status(404)}),
			site("dead.test", "", nil, testweb.Routes{"/": testweb.Status(410)}),
			site("moved.test", "", nil, testweb.Routes{"/": http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					_, port, _ := net.SplitHostPort(r.Host)
					http.Redirect(w, r, "http://dead.test:"+port+"/", http.StatusMovedPermanently)
				})}),
			testweb.Site{Host: "denied.test", Handler: testweb.Routes{
				"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /x\n"), "/x": testweb.Page("x"),
			}},
			testweb.Site{Host: "closed.test", Handler: testweb.Routes{
				"/robots.txt": testweb.Robots("User-agent: *\nDisallow: /\n"), "/": testweb.Page("x"),
			}})
		o := testOptions(t, web)
		e, stop := daemon(t, o, web.URL("fine.test", "/"), web.URL("gone.test", "/"), web.URL("moved.test", "/"),
			web.URL("denied.test", "/x"), web.URL("closed.test", "/"))
		fates := func() string {
			d := e.Status().DeadSeeds
			if d == nil {
				return "none"
			}
			why := make(map[string]string)
			for _, r := range d.First {
				u := parse(t, r.URL)
				why[u.Host()] = r.Reason
			}
			return fmt.Sprint(d.Count, why)
		}
		until := func(want string) {
			t.Helper()
			testkit.Until(t, "the dead seeds are "+want, func() bool { return fates() == want })
		}
		until("4 map[closed.test:robots denied.test:robots gone.test:status 404 moved.test:status 410]")
		web.SetHandler("gone.test", testweb.Routes{"/": testweb.Page("back")})
		must.Get(e.Retry(context.Background(), sweep.Selection{States: storage.In(storage.Failed)},
			noProgress))(t)
		until("3 map[closed.test:robots denied.test:robots moved.test:status 410]")
		remove := SeedWish{}
		for _, u := range []string{web.URL("denied.test", "/x"), web.URL("closed.test", "/"),
			web.URL("moved.test", "/")} {
			remove.Remove = append(remove.Remove, parse(t, u))
		}
		must.Get(e.ChangeSeeds(context.Background(), remove))(t)
		until("none")
		stop()
	})
}
