package server

import (
	"io"
	"net/http"
)

// handler is all that is served, with its guards.
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
	open := problems(mux)
	closed := s.authenticate(open)
	return s.guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz": // for supervisors, which have no token
			open.ServeHTTP(w, r)
		default:
			closed.ServeHTTP(w, r)
		}
	})), nil
}

// health says that the process answers.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// ready says whether the crawl works: that it has begun, and can write down what it does.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	switch state := s.crawl.Status().State; state {
	case "running", "paused", "draining":
		s.health(w, nil)
	default:
		writeProblem(w, http.StatusServiceUnavailable, "the crawl is "+state)
	}
}
