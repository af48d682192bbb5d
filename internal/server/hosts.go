package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/inspect"
)

// hostsQuery asks for a page of hosts.
type hostsQuery struct {
	State string `query:"state" enum:"idle,ready,busy,waiting,trouble,held" doc:"only hosts in this state"`
	Sort  string `query:"sort" enum:"waiting,urls,requests,bytes,delay,finish,next,name,found" default:"waiting" doc:"the order: numbers most first, next soonest first, found in the order of discovery"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"hosts of a page"`
	After string `query:"after" maxLength:"512" doc:"next of the page before"`
}

// hostPath names a host.
type hostPath struct {
	Host string `path:"host" maxLength:"512" doc:"its name"`
}

func (s *Server) hostsAPI(api huma.API) {
	handle(api, operation("GET", "/hosts", "hosts-list", "Hosts, a page at a time"), s.listHosts)
	handle(api, operation("GET", "/hosts/{host}", "hosts-one", "All that is known of a host", http.StatusNotFound),
		func(ctx context.Context, q *hostPath) (*object[inspect.HostStory], error) {
			return answer(s.crawl.View().Host(ctx, q.Host))
		})
}

func (s *Server) listHosts(ctx context.Context, q *hostsQuery) (*object[inspect.HostPage], error) {
	query := inspect.HostQuery{State: q.State, Sort: q.Sort, Limit: q.Limit, After: q.After}
	if err := query.Check(); err != nil {
		return nil, errQuery{err}
	}
	return answer(s.crawl.View().HostPage(ctx, query))
}
