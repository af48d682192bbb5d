package crawl

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// A page is not fetched again when the time after which it is not to be shown is over, be it so
// already or by the next visit.
func TestUnavailableAfter(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		until := func(at time.Time) http.Handler {
			return testweb.Content("text/html",
				fmt.Appendf(nil, "<meta name=robots content='unavailable_after: %s'><p>until then",
					at.Format(time.RFC3339)))
		}
		web := serve(testweb.Site{Host: "a.test", Handler: testweb.Routes{
			"/robots.txt": testweb.Robots(""), "/": testweb.Page("all", "/over", "/soon", "/later"),
			"/over": until(time.Now().Add(-time.Hour)), "/soon": until(time.Now().Add(500 * time.Millisecond)),
			"/later": until(time.Now().Add(time.Hour)),
		}})
		o := recrawling(t, web)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		e := must.Get(Open(o, testLog(t)))(t)
		defer e.Close()
		ended := make(chan error, 1)
		go func() {
			_, err := e.Run(ctx, []Seed{seed(t, web.URL("a.test", "/"))})
			ended <- err
		}()
		for ctx.Err() == nil && web.Requests().Host("a.test").CountByPath()["a.test/later"] < 4 {
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
		must.Do(t, <-ended)
		requested := web.Requests().Host("a.test").CountByPath()
		assert.True(t, requested["a.test/over"] == 1 && requested["a.test/soon"] == 1 &&
			requested["a.test/later"] >= 4 && requested["a.test/"] >= 3, "requested: %v", requested)
	})
}
