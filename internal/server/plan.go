package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/inspect"
)

// planQuery asks for the plan of renewals.
type planQuery struct {
	Hosts int `query:"hosts" minimum:"0" maximum:"1000" default:"20" doc:"how many of the hosts with the most pages are looked at one by one"`
}

func (s *Server) planAPI(api huma.API) {
	handle(api, operation("GET", "/plan", "plan-show", "What will be asked for again, and how fresh the copies are"),
		func(ctx context.Context, q *planQuery) (*object[inspect.RenewalPlan], error) {
			return answer(s.crawl.View().RenewalPlan(ctx, q.Hosts))
		})
}
