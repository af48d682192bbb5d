// Package visiting makes single requests that somebody watches: of a URL, after its robots.txt.
package visiting

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// Visit is one request for a URL that somebody watches. The URL need not be one of the crawl, and does not become one.
// Of the response nothing is kept but what the host demands.
type Visit struct {
	URL     weburl.URL
	OptOut  string          // why nothing of the host is fetched; empty: no opt-out covers it
	Robots  robots.Record   // in force, or why there is none
	Decided robots.Decision // what that means; not DecisionMatch: no request was made
	Verdict robots.Verdict  // of DecisionMatch
	Rules   *robots.Rules   // of DecisionMatch

	Request  requestlog.Request // the request for the URL; not Sent: none was made
	Usage    bool               // none was made for what its origin says about the use of its pages
	Failure  *fetch.Error       // why there is no response; its body is gone
	Header   http.Header        // of the response; nil: there is none
	Proto    string             // as in fetch.Response
	Wall     string             // what the response says of a wall; empty: nothing
	Page     archive.Page       // as the output of a crawl would have it
	Document *extract.Page      // of an HTML page; nil: it is none

	waiting atomic.Bool // for its request
}

// ErrBusy says that as many visits are under way as may be.
var ErrBusy = errors.New("too many requests by hand are under way")

// most bounds the visits under way.
const most = 32

// Visits makes visits. Its methods are safe for concurrent use.
type Visits struct {
	Policies robots.Options
	Obey     bool
	Now      func() time.Time
	Policy   func(weburl.Origin) ([]byte, error)         // the stored robots.txt of an origin
	Compile  func(*robots.Record) (*robots.Rules, error) // of such a file
	OptOut   func(weburl.URL) string                     // as Visit.OptOut
	Serve    func(context.Context, weburl.URL, frontier.RobotsJob) (frontier.RobotsAnswer, error)
	underWay atomic.Int32
}

// Make makes the request of x when the limits of its host allow it, if no opt-out covers it and robots.txt allows it,
// which is fetched first if none is in force. After an error of ctx the request is not made any more unless it has
// begun; then only what x says of opt-outs and robots.txt may be read. Other errors are ErrBusy, and those of Serve and
// of the stored robots.txt.
func (v *Visits) Make(ctx context.Context, x *Visit) error {
	if x.OptOut = v.OptOut(x.URL); x.OptOut != "" {
		return nil
	}
	defer v.underWay.Add(-1)
	if v.underWay.Add(1) > most {
		return ErrBusy
	}
	defer x.waiting.Store(false)
	for range 3 { // a robots.txt may expire while the request waits for its turn
		if err := v.decide(ctx, x); err != nil || !x.isAllowed(v.Obey) {
			return err
		}
		x.waiting.Store(true)
		_, err := v.Serve(ctx, x.URL, frontier.RobotsJob{Origin: x.URL.Origin(), Visit: &frontier.Visit{
			Verdict: x.Verdict, Rules: x.Rules, Policy: &x.Robots, Watcher: x,
		}})
		if err != nil || !x.waiting.Load() {
			return err
		}
	}
	return nil
}

// Begin reports whether somebody still waits for the request of x, once.
func (x *Visit) Begin() bool { return x.waiting.CompareAndSwap(true, false) }

// isAllowed reports whether robots.txt allows the request.
func (x *Visit) isAllowed(obey bool) bool {
	return x.Decided.Kind == robots.DecisionMatch && (x.Verdict.Allowed || !obey)
}

// decide decides by the robots.txt of the origin, which is fetched if none is in force.
func (v *Visits) decide(ctx context.Context, x *Visit) error {
	origin := x.URL.Origin()
	encoded, err := v.Policy(origin)
	if err != nil {
		return err
	}
	x.Robots, _ = robots.DecodeRecord(encoded) // one that cannot be read is fetched again
	x.Rules = nil
	if x.Decided = v.Policies.Decide(x.Robots, 0, v.Now()); x.Decided.Kind == robots.DecisionFetch {
		a, err := v.Serve(ctx, origin.URL("/robots.txt"), frontier.RobotsJob{
			Origin: origin, Previous: x.Robots, Visit: new(frontier.Visit),
		})
		if err != nil {
			return err
		}
		x.Robots, x.Rules, x.Decided = a.Record, a.Rules, v.Policies.Decide(a.Record, 0, v.Now())
	}
	if x.Decided.Kind != robots.DecisionMatch {
		return nil
	}
	if x.Rules == nil {
		if x.Rules, err = v.Compile(&x.Robots); err != nil {
			return err
		}
	}
	x.Verdict = x.Rules.Match(x.URL.RequestURI())
	return nil
}
