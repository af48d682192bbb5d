package crawl

import (
	"context"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/visiting"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Visit is one request for a URL that somebody watches.
type Visit = visiting.Visit

// ErrVisits says that as many visits are under way as may be.
var ErrVisits = visiting.ErrBusy

// Visit makes the request of a visit: see visiting.Visits. Other errors are those of Control. Any goroutine may call
// it.
func (v *views) Visit(ctx context.Context, x *Visit) error {
	if !v.mailbox.Load().isOpen() {
		return ErrNotRunning
	}
	return v.visits.Make(ctx, x)
}

// newVisits returns what makes visits.
func (v *views) newVisits() *visiting.Visits {
	return &visiting.Visits{
		Policies: v.o.Frontier.Robots, Obey: v.o.Frontier.Obey, Now: v.o.Now,
		Policy: v.store.Policy, Compile: v.rulesReader().Compile, Serve: v.serve,
		OptOut: func(u weburl.URL) string {
			if e, is := v.scope.Load().OptOut(u); is {
				return e.String()
			}
			return ""
		},
	}
}
