package server

import (
	"io"
	"net/http"
	"net/http/pprof"
	"time"
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
	if s.o.Metrics != nil {
		mux.Handle("GET /metrics", s.o.Metrics.handler(s.crawl, s.o.Now))
	}
	if s.o.Pprof {
		s.profiles(mux)
	}
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

// longestProfile is how long a profile may be recorded.
const longestProfile = 2 * time.Minute

// profiles are those of net/http/pprof. Only who may do everything gets them: they cost time, and show what is in memory.
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
