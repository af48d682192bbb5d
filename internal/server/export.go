package server

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/inspect"
)

// Trailers of streams.
const (
	trailerMatching = "Amble-Matching" // hosts that the question is for
	trailerNext     = "Amble-Next"     // the position to go on from; absent at the end
)

// exportQuery asks for URLs without a bound.
type exportQuery struct {
	URLFilter
	Limit int `query:"limit" minimum:"0" default:"0" doc:"at most so many; 0: all"`
}

// exportHostsQuery asks for hosts without a bound.
type exportHostsQuery struct {
	State string `query:"state" enum:"idle,ready,busy,waiting,trouble,held,paused" doc:"only hosts in this state"`
	Limit int    `query:"limit" minimum:"0" default:"0" doc:"at most so many; 0: all"`
}

func (s *Server) exportAPI(api huma.API) {
	urls := streams[inspect.URL](api, operation("GET", "/export", "export-urls", "Every URL as JSON lines", http.StatusNotFound))
	urls.Description = "Walks over all that is stored, in short steps, while the crawl goes on. Where the limit ended it, the trailer " + trailerNext + " has the place to go on from."
	handle(api, urls, s.exportURLs)
	hosts := streams[inspect.Host](api, operation("GET", "/export/hosts", "export-hosts", "Every host as JSON lines, in the order of discovery"))
	hosts.Description = "The trailer " + trailerMatching + " has their number."
	handle(api, hosts, s.exportHosts)
}

func (s *Server) exportURLs(ctx context.Context, q *exportQuery) (*huma.StreamResponse, error) {
	query, err := q.query()
	if err != nil {
		return nil, err
	}
	query.Limit = q.Limit
	view := s.crawl.View()
	if q.Host != "" {
		if err := view.KnowsHost(q.Host); err != nil {
			return nil, err
		}
	}
	return s.stream(func(t *stream) error {
		t.w.Header().Set("Trailer", trailerNext)
		t.begin()
		next, err := view.URLs(ctx, query, func(u *inspect.URL) error { return t.Lines.Write(u) })
		if next != nil {
			t.w.Header().Set(trailerNext, next.String())
		}
		return err
	}), nil
}

func (s *Server) exportHosts(ctx context.Context, q *exportHostsQuery) (*huma.StreamResponse, error) {
	query := inspect.HostQuery{State: q.State, Sort: inspect.OrderFound, Limit: q.Limit}
	return s.stream(func(t *stream) error {
		t.w.Header().Set("Trailer", trailerMatching)
		t.begin()
		matching, err := s.crawl.View().Hosts(ctx, query, func(h *inspect.Host) error { return t.Lines.Write(h) })
		t.w.Header().Set(trailerMatching, strconv.Itoa(matching))
		return err
	}), nil
}
