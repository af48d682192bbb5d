//go:build !core

// Package auditapi is the operation of the API that audits the request log of the running crawl.
package auditapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/modules/audit"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/robots"
)

// The trailers of an audit: the number of violations, and the number of parts of the log that could
// not be read.
const (
	trailerViolations = "Amble-Violations"
	trailerDamaged    = "Amble-Damaged"
)

// query selects requests.
type query struct {
	Host  string    `query:"host" maxLength:"512" doc:"only requests to this host"`
	Since time.Time `query:"since" doc:"only requests that began since"`
}

// Register registers the operation. One audit of a server runs at a time.
func Register(s *server.Server, api huma.API) {
	op := server.Operation("GET", "/audit", "audit", "Every request, and the limits it was checked against")
	op.Description = "Reads the request log to its end, which takes time for a long log: " +
		"only one audit runs at a time. " +
		"The trailer " + trailerViolations + " has the number of violations, and " + trailerDamaged +
		" that of the parts of the log that could not be read: nothing is proven about those. " +
		server.TrailerIncomplete + " lists the nodes of a cluster that have not answered to the end."
	var auditing sync.Mutex
	server.HandleOfNodes[audit.Line](s, api, op, func(ctx context.Context, q *query, t *server.Stream) error {
		if !auditing.TryLock() {
			return huma.NewError(http.StatusServiceUnavailable,
				"another audit is running: try again when it has ended")
		}
		defer auditing.Unlock()
		return run(ctx, s, q, t)
	}, trailerViolations, trailerDamaged)
}

// run audits the requests of a crawl, or of a node.
func run(ctx context.Context, s *server.Server, q *query, t *server.Stream) error {
	dirs, err := s.RequestLogs(ctx)
	if err != nil {
		return err
	}
	optOuts, err := s.OptOuts(ctx)
	if err != nil {
		return err
	}
	o := audit.Options{Since: q.Since, Robots: robots.DefaultOptions(), OptOuts: List(optOuts)}
	if q.Host != "" {
		o.Host = inspect.CanonicalHost(q.Host)
	}
	o.Each = func(r *requestlog.Request, f *audit.Finding) error {
		line := audit.NewLine(r, f)
		return t.Lines.Write(&line)
	}
	logs := make([][]string, len(dirs))
	for i, dir := range dirs {
		logs[i] = []string{dir}
	}
	t.Begin()
	report, err := audit.Run(ctx, logs, o)
	t.Count(trailerViolations, report.Counts.Violations)
	t.Count(trailerDamaged, uint64(len(report.Damaged)))
	return err
}

// List returns the list of opt-outs, for an audit.
func List(all []crawl.OptOut) *optout.List {
	entries := make([]optout.Entry, len(all))
	for i := range all {
		entries[i] = all[i].Entry
	}
	return optout.NewList(entries...)
}
