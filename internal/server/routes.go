package server

import (
	"encoding/json"
	"io"
	"net/http"
)

// route is one thing that can be asked.
type route struct {
	pattern string // of http.ServeMux
	open    bool   // no token is asked for
	long    bool   // the body may be of any length
	answer  http.HandlerFunc
}

// routes is the whole API.
func (s *Server) routes() []route {
	return []route{
		{pattern: "GET /healthz", open: true, answer: s.health},
		{pattern: "GET /api/v1/status", answer: s.status},
		{pattern: "GET /api/v1/hosts", answer: s.hosts},
		{pattern: "GET /api/v1/hosts/{name}", answer: s.host},
		{pattern: "GET /api/v1/urls", answer: s.urls},
		{pattern: "POST /api/v1/urls", long: true, answer: s.addURLs},
		{pattern: "GET /api/v1/url", answer: s.url},
		{pattern: "GET /api/v1/export", answer: s.export},
	}
}

// handler puts the guards around the routes. The outermost is the first to look at a request.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.routes() {
		var h http.Handler = r.answer
		if !r.long {
			h = http.MaxBytesHandler(h, maxBody)
		}
		if !r.open {
			h = s.requireToken(h)
		}
		mux.Handle(r.pattern, h)
	}
	return s.identify(s.checkHost(sameOrigin(mux)))
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, "application/json", s.crawl.Status())
}

// problem is an error as RFC 9457 has it.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"` // what went wrong, and what to do
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	writeJSON(w, status, "application/problem+json", problem{http.StatusText(status), status, detail})
}

// writeJSON answers with a value. One that cannot be encoded is a mistake of this program.
func writeJSON(w http.ResponseWriter, status int, contentType string, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that went away is not our problem
}
