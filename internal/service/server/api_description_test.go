package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestWhatTheDescriptionRefuses: what is against the description is refused, and what is in it is
// not.
func TestWhatTheDescriptionRefuses(t *testing.T) {
	r := startCrawl(t)
	r.finished(t)
	before, next := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339),
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/history?window=", "", 422},
		{"GET", "/history?window=2h", "", 200},
		{"GET", "/urls?reason=", "", 422},
		{"GET", "/urls?state=", "", 422},
		{"GET", "/urls?limit=", "", 422},
		{"GET", "/urls?reason=nonsense", "", 422},
		{"GET", "/urls?reason=status&host=&from=", "", 200},
		{"GET", "/urls?from=x", "", 422},
		{"GET", "/urls?from=1.2", "", 200},
		{"GET", "/hosts?sort=", "", 422},
		{"GET", "/hosts?after=&under=", "", 200},
		{"GET", "/hosts?contains=", "", 200},
		{"GET", "/hosts?contains=" + strings.Repeat("x", 512), "", 200},
		{"GET", "/hosts?contains=" + strings.Repeat("x", 513), "", 422},
		{"GET", "/hosts?contains=a&contains=b", "", 422},
		{"GET", "/hosts?contains=%ff", "", 422},
		{"DELETE", "/seeds?url=http://unknown.test/&url=http://none.test/", "", 404},
		{"GET", "/url?url=", "", 422},
		{"GET", "/url?url=http://a.test/" + strings.Repeat("x", 2100), "", 422},
		{"GET", "/url?url=http://a.test/" + strings.Repeat("%F0%9F%98%80", 160), "", 200},
		{"GET", "/robots/check?url=http://a.test/" + strings.Repeat("x", 40_000), "", 431},
		{"POST", "/urls", "", 400},
		{"POST", "/urls?each=", "http://a.test/\n", 422},
		{"POST", "/urls?each=true", "\n", 200},
		{"POST", "/hosts/a.test/pause", `{"until":null,"seconds":null}`, 200},
		{"POST", "/hosts/a.test/pause", `{"until":"` + before + `"}`, 422},
		{"POST", "/hosts/a.test/pause", `{"until":"` + next + `"}`, 200},
		{"POST", "/hosts/a.test/pause", `{"seconds":0}`, 422},
		{"POST", "/hosts/a.test/pause", `{"seconds":2}`, 200},
		{"POST", "/hosts/a.test/pause", ``, 200},
		{"POST", "/hosts/a.test/resume", ``, 200},
		{"POST", "/urls/retry", `{"states":null,"host":"","pattern":null}`, 422},
		{"POST", "/urls/delete", `{"host":null,"before":"` + before + `"}`, 422},
		{"POST", "/urls/delete", `{"host":"","before":"` + before + `"}`, 422},
		{"POST", "/optouts", `{"scope":"host","value":"a.test","until":null}`, 200},
		{"POST", "/seeds", "", 400},
		{"POST", "/seeds", "# nothing\n", 422},
		{"POST", "/seeds", "http://a.test/ tags=x\nnonsense\n", 422},
		{"POST", "/seeds", "\x1f\x8b\x08", 422},
		{"POST", "/seeds", `{"url":"http://a.test/","links":"some"}`, 422},
		{"DELETE", "/seeds", "", 422},
		{"DELETE", "/seeds?url=x", "", 422},
		{"DELETE", "/seeds?url=http://unknown.test/", "", 404},
		{"GET", "/seeds?url=x", "", 422},
		{"GET", "/seeds", "", 200},
		{"POST", "/reports", "", 400},
		{"POST", "/urls/retry", `{"states":[],"host":"a.test","dry_run":true,"pattern":null}`, 200},
	} {
		response, body := r.read(t, c.method, "/api/v1"+c.path, strings.NewReader(c.body))
		assert.Equal(t, response.StatusCode, c.status, c.method, c.path, c.body, body)
		if response.StatusCode >= 400 && response.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %.60s: an error of type %s", c.method, c.path, response.Header.Get("Content-Type"))
		}
	}
}

// TestLongHeader: a header that is too long is an error like any other, and read within bounds.
func TestLongHeader(t *testing.T) {
	s := start(t, Options{})
	for _, size := range []int{maxHeader + 1000, mostHeader + 10_000} {
		c := must.Get(net.Dial("tcp", s.Address()))(t)
		must.Do(t, c.SetDeadline(time.Now().Add(20*time.Second)))
		_, _ = fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %s\r\nConnection: close\r\n\r\n",
			strings.Repeat("x", size))
		answer, _ := io.ReadAll(c) // it may be reset after the answer
		assert.True(t, strings.HasPrefix(string(answer), "HTTP/1.1 431 ") &&
			(size >= mostHeader || strings.Contains(string(answer), "application/problem+json")), "%d bytes: %.200s",
			size, answer)
		must.Do(t, c.Close())
	}
}

// TestRefusalsAreWords: what a client is told names each place, and no value that is not there.
func TestRefusalsAreWords(t *testing.T) {
	s := start(t, Options{Settings: refusing{}})
	client, err := Dial(t.Context(), s.o.DataDir, "")
	must.Do(t, err)
	defer client.Close()
	err = client.Command(t.Context(), http.MethodPatch, "/config", map[string]any{"crawl": 1}, nil)
	assert.True(t, err != nil && !strings.Contains(err.Error(), "<nil>") &&
		strings.Contains(err.Error(), "; crawl.workers: read 0; want 1 to 4096"), "%v", err)
}

// refusing are settings that refuse every change.
type refusing struct{}

func (refusing) Settings() []Setting { return nil }

func (refusing) Change(context.Context, []byte) ([]string, error) {
	return nil, Rejected{{Key: "crawl.workers", Message: "read 0; want 1 to 4096"}}
}

func (refusing) Reload(context.Context, bool) (SettingsChange, error) { return SettingsChange{}, nil }

// conforms holds an answer against the description of the API: that the operation has such a
// status, with such a type, and that the body is as its schema says. What is no operation may only
// answer with a problem, and has to for an error.
func conforms(t *testing.T, s *Server, response *http.Response, body string) {
	t.Helper()
	request := response.Request
	kind := response.Header.Get("Content-Type")
	what := fmt.Sprintf("%s %s: %d %s", request.Method, request.URL.RequestURI(), response.StatusCode, kind)
	op := operationOf(s, request)
	if op == nil {
		if response.StatusCode >= 400 {
			assert.Equal(t, kind, "application/problem+json", what, "an error that is no problem", body)
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
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PATCH": item.Patch,
			"PUT": item.Put, "DELETE": item.Delete} {
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
		huma.Validate(s.api.OpenAPI().Components.Schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer,
			value, &result)
		for _, err := range result.Errors {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The description is complete: it says what each operation is for, and answers in the form that it
// promises.
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
	assert.True(t, strings.HasPrefix(d.OpenAPI, "3.1") && d.Info.Version == "1.2.3" &&
		len(d.Components.SecuritySchemes) == 2 && len(d.Paths) != 0, "%.300s", body)
	assert.True(t, !strings.Contains(body, "$schema"), "answers have a $schema")
	for path, methods := range d.Paths {
		for method, op := range methods {
			assert.True(t, op.OperationID != "" && op.Summary != "" && op.Responses["401"] != nil &&
				op.Responses["200"] != nil, "%s %s: %+v", method, path, op)
		}
	}
}
