package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// databaseType is the media type of a copy of the database.
const databaseType = "application/octet-stream"

func (s *Server) backupAPI(api huma.API) {
	op := operation("GET", "/backup", "backup", "A copy of the database as of one moment")
	op.Description = "The crawl goes on meanwhile; the file of the database grows by what is rewritten until the copy is complete. The token for reading does not do."
	op.Responses = map[string]*huma.Response{"200": {
		Description: "the database file", Content: map[string]*huma.MediaType{databaseType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
	}}
	op.Middlewares = huma.Middlewares{func(c huma.Context, next func(huma.Context)) {
		if who, _ := c.Context().Value(roleKey{}).(role); who < roleFull {
			_ = huma.WriteErr(api, c, http.StatusForbidden, "this token may not have that: send server.token")
			return
		}
		next(c)
	}}
	handle(api, op, func(context.Context, *struct{}) (*huma.StreamResponse, error) {
		return s.stream(func(t *stream) error {
			t.kind = databaseType
			_, err := s.crawl.Backup(t)
			return err
		}), nil
	})
}
