package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// conforms holds an answer against the description of the API: that the operation has such a status, with such a type, and that the body is as its
// schema says. What is no operation may only answer with a problem, and has to for an error.
func conforms(t *testing.T, s *Server, response *http.Response, body string) {
	t.Helper()
	request := response.Request
	kind := response.Header.Get("Content-Type")
	what := fmt.Sprintf("%s %s: %d %s", request.Method, request.URL.RequestURI(), response.StatusCode, kind)
	op := operationOf(s, request)
	if op == nil {
		if response.StatusCode >= 400 {
			if kind != "application/problem+json" {
				t.Errorf("%s: an error that is no problem: %s", what, body)
			}
			validate(t, s, what, s.api.OpenAPI().Components.Schemas.Map()["ErrorModel"], body)
		}
		return
	}
	described := op.Responses[fmt.Sprint(response.StatusCode)]
	if described == nil {
		t.Errorf("%s: the description of %s has no such status", what, op.OperationID)
		return
	}
	if len(described.Content) == 0 || request.Method == http.MethodHead {
		return
	}
	media := described.Content[kind]
	if media == nil {
		t.Errorf("%s: the description of %s has no such type", what, op.OperationID)
		return
	}
	if media.Schema == nil || !strings.Contains(kind, "json") {
		return
	}
	validate(t, s, what, media.Schema, body)
}

// operationOf finds the operation that a request is for; nil: none.
func operationOf(s *Server, r *http.Request) *huma.Operation {
	mux := http.NewServeMux()
	var found *huma.Operation
	for path, item := range s.api.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PATCH": item.Patch, "PUT": item.Put, "DELETE": item.Delete} {
			if op != nil {
				mux.HandleFunc(method+" "+path, func(http.ResponseWriter, *http.Request) { found = op })
			}
		}
	}
	if h, pattern := mux.Handler(r); pattern != "" {
		h.ServeHTTP(nil, r)
	}
	return found
}

// validate holds one value, or one a line, against a schema.
func validate(t *testing.T, s *Server, what string, schema *huma.Schema, body string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	for {
		var value any
		switch err := d.Decode(&value); err {
		case nil:
		case io.EOF:
			return
		default:
			t.Errorf("%s: %v in %.200s", what, err, body)
			return
		}
		var result huma.ValidateResult
		huma.Validate(s.api.OpenAPI().Components.Schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, value, &result)
		for _, err := range result.Errors {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The description is complete: it says what each operation is for, and answers in the form that it promises.
func TestDescription(t *testing.T) {
	s := start(t, Options{Token: "secret", Version: "1.2.3"})
	response, body := request(t, s, "GET", "/api/v1/openapi.json", map[string]string{"Authorization": "Bearer secret"})
	var d struct {
		OpenAPI string
		Info    struct{ Version string }
		Paths   map[string]map[string]struct {
			OperationID, Summary string
			Responses            map[string]any
		}
		Components struct{ SecuritySchemes map[string]any }
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil || response.StatusCode != 200 {
		t.Fatalf("%d, %v", response.StatusCode, err)
	}
	if !strings.HasPrefix(d.OpenAPI, "3.1") || d.Info.Version != "1.2.3" || len(d.Components.SecuritySchemes) != 2 || len(d.Paths) == 0 {
		t.Errorf("%.300s", body)
	}
	if strings.Contains(body, "$schema") {
		t.Error("answers have a $schema")
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			if op.OperationID == "" || op.Summary == "" || op.Responses["401"] == nil || op.Responses["200"] == nil {
				t.Errorf("%s %s: %+v", method, path, op)
			}
		}
	}
}
