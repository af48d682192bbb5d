package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/pprof"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/storage"
)

// BasePath is the path of the API.
const BasePath = "/api/v1"

const description = `Inspect and control a running crawl. Errors are application/problem+json (RFC 9457).
Lists are paged; request the next page with the cursor of the last. Streams are JSON lines: a stream that
cannot be completed ends with a broken connection.`

// Operations registers operations of one subject.
type Operations func(*Server, huma.API)

// registerAPI registers all operations on the mux, and their description.
func (s *Server) registerAPI(mux *http.ServeMux) error {
	config := huma.DefaultConfig("amble", s.o.Version)
	config.CreateHooks = nil                                             // they add a $schema to every response
	config.DocsPath, config.SchemasPath, config.OpenAPIPath = "", "", "" // the first loads from a CDN
	config.RejectUnknownQueryParameters = true
	config.Info.Description = description
	if s.o.Token != "" {
		config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
			"bearer": {Type: "http", Scheme: "bearer"},
			"basic":  {Type: "http", Scheme: "basic", Description: "any name, and the token as the password"},
		}
		config.Security = []map[string][]string{{"bearer": {}}, {"basic": {}}}
	}
	api := humago.New(mux, config)
	api.UseMiddleware(s.keepRequest, refuseLoose(api))
	api.OpenAPI().Components.Schemas.RegisterTypeAlias(reflect.TypeFor[inspect.Counts](),
		reflect.TypeFor[map[string]uint32]())
	for _, register := range append([]Operations{statusAPI, controlAPI, historyAPI, eventsAPI, hostsAPI, urlsAPI,
		robotsAPI, exportAPI, backupAPI, optOutAPI, seedsAPI, leasesAPI}, s.o.Operations...) {
		register(s, api)
	}
	if s.o.Settings != nil {
		settingsAPI(s, api)
	}
	if s.o.Division != nil {
		s.o.Division.Register(api)
		describePositions(api.OpenAPI())
	}
	describeNulls(api.OpenAPI())
	described, err := json.Marshal(api.OpenAPI())
	if err != nil {
		return fmt.Errorf("describe the API: %w", err)
	}
	mux.HandleFunc("GET "+BasePath+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(described)
	})
	s.api = api
	return nil
}

// describeNulls describes that null in a request is as if the property were absent, if it is optional:
// huma takes it so.
func describeNulls(o *huma.OpenAPI) {
	for _, path := range o.Paths {
		for _, op := range []*huma.Operation{path.Post, path.Patch, path.Delete} {
			if op == nil || op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
				continue
			}
			describeNullsOf(o, op.RequestBody.Content["application/json"].Schema)
		}
	}
}

// describeNullsOf does that for an object, and for the objects of its lists.
func describeNullsOf(o *huma.OpenAPI, object *huma.Schema) {
	if object.Ref != "" {
		object = o.Components.Schemas.SchemaFromRef(object.Ref)
	}
	for name, property := range object.Properties {
		if property.Type != "" && !slices.Contains(object.Required, name) {
			property.Nullable = true
		}
		if property.Items != nil {
			describeNullsOf(o, property.Items)
		}
	}
}

// refuseLoose refuses query parameters that their schema does not allow, and huma does: empty values, which it takes
// for absent, values after the first one, and text that is no UTF-8.
func refuseLoose(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		u := c.URL()
		query, path := u.Query(), huma.NewPathBuffer(nil, 0)
		var result huma.ValidateResult
		for _, p := range c.Operation().Parameters {
			values := query[p.Name]
			if p.In != "query" || len(values) == 0 || p.Schema.Type == huma.TypeArray {
				continue
			}
			path.Reset()
			path.Push("query")
			path.Push(p.Name)
			switch {
			case len(values) > 1:
				result.Add(path, values, "expected one value")
			case !utf8.ValidString(values[0]):
				result.Add(path, strings.ToValidUTF8(values[0], "?"), "expected UTF-8")
			case values[0] == "":
				huma.Validate(api.OpenAPI().Components.Schemas, p.Schema, path, huma.ModeWriteToServer, "", &result)
			}
		}
		if len(result.Errors) > 0 {
			// the client may have gone
			_ = huma.WriteErr(api, c, http.StatusUnprocessableEntity, "validation failed", result.Errors...)
			return
		}
		next(c)
	}
}

// Object is a response of one JSON object.
type Object[T any] struct{ Body T }

// answer wraps the response of a handler.
func answer[T any](value T, err error) (*Object[T], error) {
	if err != nil {
		return nil, err
	}
	return &Object[T]{value}, nil
}

// Operation describes an operation, with the errors that all operations may have.
func Operation(method, path, id, summary string, more ...int) huma.Operation {
	errs := append([]int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusUnprocessableEntity,
		http.StatusTooManyRequests,
		http.StatusRequestHeaderFieldsTooLarge, http.StatusServiceUnavailable,
	}, more...)
	tag, _, _ := strings.Cut(id, "-")
	return huma.Operation{Method: method, Path: BasePath + path, OperationID: id, Summary: summary,
		Tags: []string{tag}, Errors: errs, MaxBodyBytes: maxBody}
}

// bodyErrors are the additional errors of an operation with a body.
func bodyErrors() []int {
	return []int{http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType}
}

// Handle registers an operation and turns its errors into problems.
func Handle[I, O any](api huma.API, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, asProblem(err)
		}
		return out, nil
	})
}

// errQuery is an invalid request.
type errQuery struct{ error }

// asProblem returns the problem that a client gets for an error.
func asProblem(err error) huma.StatusError {
	var known huma.StatusError
	var rejected Rejected
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &rejected):
		return rejected.problem()
	}
	return huma.NewError(statusOf(err), err.Error())
}

func statusOf(err error) int {
	var query errQuery
	switch {
	case errors.As(err, &query), errors.Is(err, inspect.ErrQuery):
		return http.StatusUnprocessableEntity
	case errors.Is(err, inspect.ErrUnknown):
		return http.StatusNotFound
	case errors.Is(err, crawl.ErrDraining):
		return http.StatusConflict
	case errors.As(err, new(*Incomplete)), errors.As(err, new(unanswered)), errors.Is(err, storage.ErrLogDown),
		errors.Is(err, crawl.ErrNotRunning), errors.Is(err, crawl.ErrCopying):
		return http.StatusServiceUnavailable
	}
	return statusOfLending(err)
}

// WriteProblem writes a problem outside of an operation.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	body, err := json.Marshal(huma.NewError(status, detail))
	if err != nil {
		body = nil
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have gone
}

// problems turns the errors of the mux into problems: unknown paths and methods.
func problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		recorded := verdict{header: http.Header{}}
		h.ServeHTTP(&recorded, r)
		maps.Copy(w.Header(), recorded.header)
		detail := "there is nothing at this path; " + BasePath + "/openapi.json describes what there is"
		if recorded.status == http.StatusMethodNotAllowed {
			detail = "this path allows the methods " + recorded.header.Get("Allow")
		}
		w.Header().Del("Content-Length")
		WriteProblem(w, recorded.status, detail)
	})
}

// verdict records the status and header of a response, and drops its body.
type verdict struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (v *verdict) Header() http.Header { return v.header }

// WriteHeader implements http.ResponseWriter.
func (v *verdict) WriteHeader(status int) { v.status = status }

// Write implements http.ResponseWriter.
func (v *verdict) Write(b []byte) (int, error) { return len(b), nil }

// handler returns everything that is served, without the guards.
func (s *Server) handler() (http.Handler, error) {
	mux := http.NewServeMux()
	if err := s.registerAPI(mux); err != nil {
		return nil, err
	}
	if err := dashboard(mux); err != nil {
		return nil, err
	}
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.ready)
	if s.o.Metrics != nil {
		if s.o.Division != nil {
			for _, c := range s.o.Division.Collectors() {
				s.o.Metrics.Register(c)
			}
		}
		mux.Handle("GET /metrics", s.o.Metrics.handler(s.here, s.o.Now))
	}
	if s.o.Pprof {
		s.profiles(mux)
	}
	return problems(mux), nil
}

// health reports that the process answers.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// ready reports whether the crawl works: it has begun and can write its results.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	switch state := s.here().State; state {
	case "running", "paused", "draining":
		s.health(w, nil)
	default:
		WriteProblem(w, http.StatusServiceUnavailable, "the crawl is "+state)
	}
}

// longestProfile is how long a profile may be recorded.
const longestProfile = 2 * time.Minute

// profiles registers net/http/pprof. It needs the full token: profiles cost time, and show the
// content of memory.
func (s *Server) profiles(mux *http.ServeMux) {
	for path, h := range map[string]http.HandlerFunc{
		"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
	} {
		mux.Handle("GET "+path, onlyFull(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).SetWriteDeadline(s.o.Now().Add(longestProfile))
			h(w, r)
		})))
	}
}

func statusAPI(s *Server, api huma.API) {
	Handle(api, Operation("GET", "/status", "crawl-status", "The status of the crawl"),
		func(ctx context.Context, _ *struct{}) (*Object[CrawlStatus], error) {
			return answer(s.status(ctx), nil)
		})
}
