package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/crawl"
)

func (s *Server) statusAPI(api huma.API) {
	handle(api, operation("GET", "/status", "crawl-status", "How the crawl stands"),
		func(context.Context, *struct{}) (*object[crawl.Status], error) { return answer(s.crawl.Status(), nil) })
}
