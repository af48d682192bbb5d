//go:build !core

// Package crawlsapi has the operations of the API about the crawls of a process with several.
package crawlsapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
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

// Register registers the operations.
func Register(crawls Crawls, api huma.API) {
	list := server.Operation("GET", "/crawls", "crawls-list", "The crawls of this process")
	list.Description =
		"DEFAULT is the crawl that all other operations are about. Of crawls that are not open, because " +
			"nobody uses them, only the id is known."
	server.Handle(api, list, func(ctx context.Context, _ *struct{}) (*server.Object[crawlList], error) {
		all, err := crawls.Overviews(ctx)
		if err != nil {
			return nil, err
		}
		answer := &server.Object[crawlList]{Body: crawlList{Crawls: all}}
		for i := range all {
			answer.Body.Total.Add(&all[i].Tally)
		}
		return answer, nil
	})
	one := server.Operation("GET", "/crawls/{id}", "crawls-status", "The status of one crawl", http.StatusNotFound)
	server.Handle(api, one, func(ctx context.Context, in *crawlName) (*server.Object[crawl.Status], error) {
		status, err := crawls.StatusOf(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		return &server.Object[crawl.Status]{Body: status}, nil
	})
}
