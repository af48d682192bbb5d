//go:build !core

package plan

import (
	"context"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/service/server"
)

// path is where the API has the plan, below server.BasePath.
const path = "/plan"

// planQuery has the parameters of the recrawl plan.
type planQuery struct {
	Hosts int `query:"hosts" minimum:"0" maximum:"1000" default:"20" doc:"how many of the hosts with the most pages are listed"`
}

// Register registers the operation.
func Register(s *server.Server, api huma.API) {
	op := server.Operation("GET", path, "plan-show", "What will be recrawled, and how fresh the copies are")
	server.Handle(api, op, func(ctx context.Context, q *planQuery) (*server.Object[planOfAll], error) {
		p, err := ofServer(ctx, s, q.Hosts)
		if err != nil {
			return nil, err
		}
		return &server.Object[planOfAll]{Body: p}, nil
	})
}

// ofServer returns the plan of what an operation is about.
func ofServer(ctx context.Context, s *server.Server, hosts int) (p planOfAll, err error) {
	crawl, division := s.Of(ctx)
	if division == nil {
		p.RecrawlPlan, err = Of(ctx, crawl.View(), hosts)
		return p, err
	}
	p, err = server.AskAll[planOfAll](ctx, division, 2*server.AnswerTimeout, server.Read(path, query(hosts)))
	p.Largest = p.Largest[:min(len(p.Largest), hosts)]
	return p, err
}

// Running returns the plan of a running crawl, with at most so many of its largest hosts.
func Running(ctx context.Context, c *server.Client, hosts int) (RecrawlPlan, error) {
	var p planOfAll
	err := c.Object(ctx, server.BasePath+path, query(hosts), &p)
	if err == nil && p.Incomplete != nil {
		err = p.Incomplete
	}
	return p.RecrawlPlan, err
}

func query(hosts int) url.Values { return url.Values{"hosts": {strconv.Itoa(hosts)}} }
