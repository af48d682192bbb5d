package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/amble-crawler/amble/internal/service/listen"
)

// instanceHeader carries the identity of the process that answers.
const instanceHeader = "Amble-Instance"

// ErrExposed reports that other machines could reach the API without protection.
var ErrExposed = errors.New("other machines can reach it")

// check refuses an address beyond loopback without protection. The settings explain this in detail.
func (o *Options) check() error {
	switch {
	case o.Now == nil:
		return errors.New("start the API: Options.Now is missing")
	case listen.IsLoopback(o.Listen), o.Listen == "" && o.Division != nil:
	case o.Token == "":
		return fmt.Errorf("listen on %s: %w: a token is needed", o.Listen, ErrExposed)
	case o.TLSCert == "" && !o.BehindProxy:
		return fmt.Errorf("listen on %s: %w: it needs a certificate, or Options.BehindProxy", o.Listen, ErrExposed)
	}
	return nil
}

// guard stands between clients and everything that is served. Its methods may be called concurrently.
type guard struct {
	o        *Options
	instance string
	address  string // that the server listens on
	tokens   atomic.Pointer[tokens]
	requests *listen.Limiters
	failures *listen.Limiters // wrong tokens
}

func newGuard(o *Options, instance string) *guard {
	g := &guard{
		o: o, instance: instance, requests: listen.NewLimiters(requestBurst, requestsPerSecond, o.Now),
		failures: listen.NewLimiters(failureBurst, failuresPerSecond, o.Now),
	}
	g.setTokens(o.Token, o.ReadToken, o.FetchToken)
	return g
}

// around puts the guards around open. Supervisors, which ask for the health, have no token.
func (g *guard) around(open http.Handler) http.Handler {
	closed := g.authenticate(open)
	return g.guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz":
			open.ServeHTTP(w, r)
		default:
			closed.ServeHTTP(w, r)
		}
	}))
}

// guarded puts the guards around the handler. The outermost sees a request first.
func (g *guard) guarded(next http.Handler) http.Handler {
	return g.identify(g.limitRate(limitHeader(g.checkHost(sameOrigin(next)))))
}

// identify adds the identity of the process, and forbids caches and content sniffing.
func (g *guard) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set(instanceHeader, g.instance)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// limitHeader refuses requests with a header that is too long.
func limitHeader(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := len(r.Method) + len(r.RequestURI) + len(r.Host)
		for name, values := range r.Header {
			for _, value := range values {
				size += len(name) + len(value) + len(": \r\n")
			}
		}
		if size > maxHeader {
			WriteProblem(w, http.StatusRequestHeaderFieldsTooLarge,
				fmt.Sprintf("the request line and header have %d bytes, at most %d are allowed", size, maxHeader))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkHost refuses requests under a foreign name: a page in a browser could point its own name
// here and then read the responses. It allows the names of loopback, those of the settings, and
// beyond loopback also addresses, since those lead nowhere else.
func (g *guard) checkHost(next http.Handler) http.Handler {
	local := listen.IsLoopback(g.address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := listen.HostOf(r.Host)
		if !listen.IsLoopback(r.Host) && !slices.ContainsFunc(g.o.Hosts,
			func(name string) bool { return strings.EqualFold(name, host) }) && (local || !listen.IsAddress(host)) {
			WriteProblem(w, http.StatusMisdirectedRequest, "this API does not answer for that name: use "+
				g.address+", or add the name to server.hosts")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses requests that a page of another site makes a browser send. Programs send no
// Origin, and pass.
func sameOrigin(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteProblem(w, http.StatusForbidden, "a page of another site may not change this crawl")
	}))
	return protection.Handler(next)
}

// role is what a client may do.
type role uint8

const (
	roleNone  role = iota
	roleFetch      // take and report leases
	roleRead       // read
	roleFull       // read and change
)

type roleKey struct{}

// authenticate lets requests pass that carry a token, and those that change something only with the
// full token. Its duration reveals nothing about the tokens.
func (g *guard) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := g.roleOf(r)
		if who == roleNone {
			g.refuse(w, r)
			return
		}
		if who == roleFetch && !isForFetchers(r.URL.Path) {
			WriteProblem(w, http.StatusForbidden, "this token is for fetchers only: for anything else, send "+
				"server.token")
			return
		}
		if who == roleRead && r.Method != http.MethodGet && r.Method != http.MethodHead {
			WriteProblem(w, http.StatusForbidden, "this token is for reading only: to change something, send "+
				"server.token")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), roleKey{}, who)))
	})
}

// isForFetchers reports whether the token of fetchers opens a path.
func isForFetchers(path string) bool {
	rest, ok := strings.CutPrefix(path, BasePath)
	return ok && (rest == "/leases" || strings.HasPrefix(rest, "/leases/") || rest == "/reports" || rest == "/check")
}

// onlyFull refuses the tokens that may do less.
func onlyFull(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, _ := r.Context().Value(roleKey{}).(role); who < roleFull {
			WriteProblem(w, http.StatusForbidden, "this token is for reading only: send server.token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tokens are the tokens in force.
type tokens struct {
	full  string // empty: every client may do everything
	read  string // empty: there is none
	fetch string // empty: there is none
}

// SetTokens replaces the tokens, for requests from now on. If other machines can reach the server,
// it ignores an empty full token.
func (s *Server) SetTokens(full, read, fetch string) { s.guard.setTokens(full, read, fetch) }

func (g *guard) setTokens(full, read, fetch string) {
	if full != "" || listen.IsLoopback(g.o.Listen) {
		g.tokens.Store(&tokens{full, read, fetch})
	}
}

func (g *guard) roleOf(r *http.Request) role {
	in := g.tokens.Load()
	if in.full == "" {
		return roleFull
	}
	token := listen.TokenOf(r)
	who := roleNone
	if listen.SameToken(token, in.fetch) && in.fetch != "" {
		who = roleFetch
	}
	if listen.SameToken(token, in.read) && in.read != "" {
		who = roleRead
	}
	if listen.SameToken(token, in.full) {
		who = roleFull
	}
	return who
}

// refuse responds to a request without a valid token.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" && !g.failures.Allow(g.clientOf(r)) {
		writeTooMany(w)
		return
	}
	w.Header().Add("WWW-Authenticate", `Bearer realm="amble"`)
	w.Header().Add("WWW-Authenticate", `Basic realm="amble", charset="UTF-8"`)
	WriteProblem(w, http.StatusUnauthorized, "send the token, server.token of the settings, as Authorization: "+
		"Bearer TOKEN, or as the password of Basic")
}
