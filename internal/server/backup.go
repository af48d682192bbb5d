package server

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// databaseType is the media type of a copy of the database.
const databaseType = "application/octet-stream"

func (s *Server) backupAPI(api huma.API) {
	op := operation("GET", "/backup", "backup", "A copy of the database as of one moment")
	op.Description = "The crawl goes on meanwhile. It copies the database to a file under data_dir first " +
		"and sends that at any pace; without room for it, the answer has to be taken within a minute " +
		"and at 32 MiB/s behind that, " +
		"or the connection breaks. An answer that is shorter than its Content-Length is no copy. " +
		"One copy at a time, for others 503. The token for reading does not do."
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
			_, err := s.crawl.Backup(t.r.Context(), t, func(size int64) {
				t.w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
				t.begin()
			})
			return err
		}), nil
	})
}
