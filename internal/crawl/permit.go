package crawl

import (
	"context"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
)

// Permits say whether the engine may make requests. In a cluster they end with the trust of the node,
// and with its ownership of the shard. They are safe for concurrent use.
type Permits interface {
	// Check returns nil if a request may begin now. It does not block. While it returns an error the
	// engine begins nothing, and tries again within a second.
	Check() error
	// Begin begins a request that the gate has admitted, or returns an error if it may not be made.
	Begin(ctx context.Context, admitted *frontier.GateRequest) (Permit, error)
}

// Permit is that of one request.
type Permit interface {
	// Context returns a child of the context that was given to Begin. It ends when the request has to be
	// broken off.
	Context() context.Context
	// Check returns nil if the request may be written now. It does not block.
	Check() error
	// End ends the request, whether it was made or not.
	End()
}

// do makes a request with a permit. A request without one is not made, and fails as one that was
// canceled.
func (w *worker) do(ctx context.Context, l *frontier.Lease, req fetch.Request) (*fetch.Response, error) {
	if w.o.Permits == nil {
		return w.client.Do(ctx, req)
	}
	permit, err := w.o.Permits.Begin(ctx, l.Gate)
	if err != nil {
		now := w.o.Now()
		return nil, &fetch.Error{
			Kind: fetch.KindCanceled, Op: "begin", URL: req.URL.String(), Start: now, End: now, Err: err,
		}
	}
	defer permit.End()
	req.Permit = permit.Check
	return w.client.Do(permit.Context(), req)
}

// isPermitted reports whether requests may begin.
func (d *dispatcher) isPermitted() bool { return d.o.Permits == nil || d.o.Permits.Check() == nil }

// owns reports whether the requests to a host are for this engine to make.
func (o *Options) owns(host string) bool { return o.Journal == nil || o.Journal.Owns(host) }
