package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// instanceHeader carries the identity of the process that answers.
const instanceHeader = "Amble-Instance"

// identify says who answers, and that no answer is to be kept or guessed at.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set(instanceHeader, s.instance)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// checkHost refuses requests under a foreign name while the server listens on loopback.
func (s *Server) checkHost(next http.Handler) http.Handler {
	if !isLoopback(s.address.String()) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			writeProblem(w, http.StatusMisdirectedRequest, "this API answers on loopback only: ask for it as "+s.address.String())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses what a page of another site makes a browser send. Programs say nothing of an origin, and pass.
func sameOrigin(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusForbidden, "a page of another site may not change this crawl")
	}))
	return protection.Handler(next)
}

// isLoopback reports whether a host, with or without a port, is localhost or a loopback address.
func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// requireToken lets requests pass that carry the token, if there is one. How long it takes tells nothing about it.
func (s *Server) requireToken(next http.Handler) http.Handler {
	if s.token == "" {
		return next
	}
	want := sha256.Sum256([]byte(s.token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(given))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="amble"`)
			writeProblem(w, http.StatusUnauthorized, "send the token, server.token of the settings, as Authorization: Bearer TOKEN")
			return
		}
		next.ServeHTTP(w, r)
	})
}
