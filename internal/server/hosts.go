package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/inspect"
)

// hostsQuery asks for a page of hosts.
type hostsQuery struct {
	State    string `query:"state" enum:"idle,ready,busy,waiting,trouble,held,paused" doc:"only hosts in this state"`
	Sort     string `query:"sort" enum:"waiting,urls,requests,bytes,delay,finish,next,name,found" doc:"the order: numbers most first, next soonest first, name by the words from the right, found in the order of discovery; waiting, or name with under and contains, where it is missing"`
	Limit    int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"hosts of a page"`
	After    string `query:"after" maxLength:"512" doc:"next of the page before"`
	Under    string `query:"under" maxLength:"512" doc:"only this domain and the hosts below it, by name"`
	Contains string `query:"contains" maxLength:"512" doc:"only hosts with this in their name, by name; a page ends after a bounded number of names was looked at, and may be empty"`
}

// HostPath names a host. It is exported because only fields of exported types are read.
type HostPath struct {
	Host string `path:"host" maxLength:"512" doc:"its name"`
}

func (s *Server) hostsAPI(api huma.API) {
	handle(api, operation("GET", "/hosts", "hosts-list", "Hosts, a page at a time"), s.listHosts)
	handle(api, operation("GET", "/hosts/{host}", "hosts-one", "All that is known of a host", http.StatusNotFound),
		func(ctx context.Context, q *HostPath) (*object[inspect.HostStory], error) {
			return answer(s.crawl.View().Host(ctx, q.Host))
		})
}

func (s *Server) listHosts(ctx context.Context, q *hostsQuery) (*object[inspect.HostPage], error) {
	if q.Sort == "" {
		q.Sort = "waiting"
		if q.Under != "" || q.Contains != "" {
			q.Sort = "name"
		}
	}
	return answer(s.crawl.View().HostPage(ctx, inspect.HostQuery{
		State: q.State, Sort: q.Sort, Limit: q.Limit, After: q.After, Under: q.Under, Contains: q.Contains,
	}))
}
