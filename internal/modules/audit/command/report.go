//go:build !core

package command

import (
	"context"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/modules/audit"
	"github.com/amble-crawler/amble/internal/modules/audit/auditapi"
	"github.com/amble-crawler/amble/internal/modules/audit/auditreport"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/robots"
)

// Running returns what the request log of the running crawl proves, as auditreport.Table does; of the nodes of a
// cluster, what they have measured.
func Running(ctx context.Context, s *server.Server) (text string, columns []string, rows [][]string, err error) {
	if _, division := s.Of(ctx); division != nil {
		pace := division.Status(ctx).Pace
		text := console.Plural(pace.Gaps, "gap") + " between requests of this run that a delay applied to, " +
			console.Grouped(pace.Violations) + " below it. amble audit on each node checks its request log."
		return text, nil, nil, nil
	}
	dirs, err := s.RequestLogs(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	optOuts, err := s.OptOuts(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	return auditreport.Table(ctx, [][]string{dirs},
		audit.Options{Robots: robots.DefaultOptions(), OptOuts: auditapi.List(optOuts)})
}

// Stored is Running for a crawl that does not run.
func Stored(ctx context.Context, c *access.Crawl) (text string, columns []string, rows [][]string, err error) {
	logs, err := audit.Logs([]string{c.DataDir})
	if err != nil {
		return "", nil, nil, err
	}
	var list *optout.List
	if all, err := c.OptOuts(ctx); err == nil {
		list = auditapi.List(all)
	}
	return auditreport.Table(ctx, logs, audit.Options{Robots: c.RobotsOptions(), OptOuts: list})
}
