//go:build !core

package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/service/listen"
)

// ServerOptions say where the public listener is.
type ServerOptions struct {
	Listen          string // host:port; port 0: any free port
	TLSCert, TLSKey string // PEM files; empty: plain HTTP
	BehindProxy     bool   // X-Forwarded-For names clients
	Now             func() time.Time
}

// Bounds of the listener, which anybody reaches.
const (
	maxConnections   = 256
	clientBurst      = 60
	clientsPerSecond = 4
	maxRequestHeader = 16 << 10
	readTime         = 10 * time.Second
	writeTime        = 30 * time.Second
	idleTime         = time.Minute
)

// Server serves a handler to the public until it is closed.
type Server struct {
	address net.Addr
	http    *http.Server
	serving sync.WaitGroup
}

// Start listens, and serves h in a goroutine until Close.
func Start(o ServerOptions, h http.Handler) (*Server, error) {
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, err
	}
	gate := listen.NewGate(l, maxConnections)
	s := &Server{address: l.Addr(), http: &http.Server{
		Handler:           gate.AtWork(limited(h, o)),
		ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxRequestHeader, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: gate.ConnContext, ConnState: gate.ConnState,
	}}
	serve := func() error { return s.http.Serve(gate) }
	if o.TLSCert != "" {
		certificate, err := listen.NewIdentity(o.TLSCert, o.TLSKey, nil)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("identity.tls_cert: %w", err), l.Close())
		}
		s.http.TLSConfig = certificate.Config()
		serve = func() error { return s.http.ServeTLS(gate, "", "") }
	}
	s.serving.Go(func() { _ = serve() }) // it ends with Close
	return s, nil
}

// limited refuses clients that request too much.
func limited(h http.Handler, o ServerOptions) http.Handler {
	clients := listen.NewLimiters(clientBurst, clientsPerSecond, o.Now)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !clients.Allow(listen.ClientOf(r, o.BehindProxy)) {
			w.Header().Set("Retry-After", "30")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Address returns the address of the listener.
func (s *Server) Address() string { return s.address.String() }

// Close ends the listener when the responses that are being written have ended, or with ctx.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.serving.Wait()
	return err
}
