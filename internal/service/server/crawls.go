package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Crawls are the crawls of a process with several. Its methods are called by many goroutines at once.
type Crawls interface {
	// Overviews returns the overviews of all crawls.
	Overviews(context.Context) ([]crawl.Overview, error)
	// StatusOf returns the status of a crawl; inspect.ErrUnknown: there is no such crawl.
	StatusOf(ctx context.Context, id string) (crawl.Status, error)
}

// crawlList is all crawls.
type crawlList struct {
	Crawls []crawl.Overview `json:"crawls"`
	Total  crawl.Tally      `json:"total"` // of those that are open
}

// crawlName names a crawl.
type crawlName struct {
	ID string `path:"id" minLength:"1" maxLength:"128" doc:"the id of the crawl"`
}

func crawlsAPI(s *Server, api huma.API) {
	list := Operation("GET", "/crawls", "crawls-list", "The crawls of this process")
	list.Description =
		"DEFAULT is the crawl that all other operations are about. Of crawls that are not open, because " +
			"nobody uses them, only the id is known."
	Handle(api, list, func(ctx context.Context, _ *struct{}) (*Object[crawlList], error) {
		all, err := s.o.Crawls.Overviews(ctx)
		answered := crawlList{Crawls: all}
		for i := range all {
			answered.Total.Add(&all[i].Tally)
		}
		return answer(answered, err)
	})
	one := Operation("GET", "/crawls/{id}", "crawls-status", "The status of one crawl", http.StatusNotFound)
	Handle(api, one, func(ctx context.Context, in *crawlName) (*Object[crawl.Status], error) {
		return answer(s.o.Crawls.StatusOf(ctx, in.ID))
	})
}
