// Package server serves the API and the dashboard of a running crawl over HTTP, on the address
// server.listen.
//
// docs/API.md describes the API for people, /api/v1/openapi.json for programs. The operations are
// registered with huma, which validates requests and generates the description; each file registers
// those of one subject (inspect.go, control.go and so on). Tests check every response against the
// description.
//
// Pages of lists take no walk over the store. Streams are JSON objects, one a line
// (application/jsonl), at the client's pace. If a response cannot be completed the connection
// breaks. An error is an application/problem+json object (RFC 9457).
//
// # Who may use it
//
// The guards stand around everything, in this order: the rate of a client's requests, the name in
// the Host header (DNS rebinding), the origin of requests that change something (cross-site
// requests), the token. /healthz and /readyz need no token. Headers, bodies, connections and times
// are bounded.
//
// # How to find it
//
// Start writes the address in use to the file server.addr in the data directory, and Close removes
// it. Dial reads that file. A file that a crash left behind does no harm: it also holds the
// identity of the process, every response repeats it, and Dial accepts no other.
package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/service/listen"
)

// Bounds of what a client may cost.
const (
	maxConnections = 256
	maxHeader      = 32 << 10  // of a request, its first line included
	mostHeader     = 256 << 10 // beyond this net/http refuses it in its own words
	maxBody        = 64 << 10  // of requests that are not a list
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 30 * time.Second
)

// Crawl is what the server needs of a crawl. Its methods are called by many goroutines at once.
type Crawl interface {
	Status() crawl.Status
	View() *inspect.View
	NewImport(crawl.ImportOptions) (crawl.Import, error)
	Observe(crawl.Observer)
	Visit(context.Context, *crawl.Visit) error
	Backup(ctx context.Context, w io.Writer, begin func(size int64)) (int64, error)
	Control
	URLCommands
	Leases
}

// Watching is told the status of what this process crawls.
type Watching func(now time.Time, s *crawl.Status)

// Options say where the server listens and who may use it.
type Options struct {
	Listen      string           // host:port; port 0: any free port
	Token       string           // for clients that may do everything; empty: all may
	ReadToken   string           // for clients that may only read; empty: there is none
	FetchToken  string           // for fetchers, which may only take and report leases; empty: there is none
	Hosts       []string         // names in the Host header that lead here, besides those of loopback
	TLSCert     string           // file of the certificate chain, PEM; empty: plain HTTP
	TLSKey      string           // file of its key, PEM
	BehindProxy bool             // something in front does TLS, and sets X-Forwarded-For
	Pprof       bool             // serve /debug/pprof/, to clients that may do everything
	Metrics     *Metrics         // nil: there is no /metrics
	Settings    Settings         // nil: they can be neither read nor changed
	Division    Division         // that this process has shards of; nil: it has one crawl, or several
	Operations  []Operations     // of modules
	Watches     []Watching       // of modules; called every second
	DataDir     string           // of the crawl; the address file is there
	Version     string           // of the program, for the description of the API
	Now         func() time.Time // the clock; required
}

// Server serves until it is closed. Its methods may be called concurrently.
type Server struct {
	o        Options
	only     Crawl        // the crawl that this process runs; nil: it runs shards of one, see crawl
	open     http.Handler // everything that is served, without the guards
	instance string
	guard    *guard
	address  net.Addr
	api      huma.API // the operations
	gate     *listen.Gate
	identity *listen.Identity // nil: plain HTTP
	http     *http.Server
	serving  sync.WaitGroup
	closing  chan struct{}
	close    func() // closes closing, once

	feed     feed
	watchers atomic.Int32 // live streams
	recorder recorder
}

// Start listens and serves in a goroutine until Close. An error means that it does not run; it
// wraps the system's error, such as syscall.EADDRINUSE. ErrExposed: other machines could reach it
// without protection. c is nil for a Division, which also answers the other nodes; with an
// empty Listen only these. It is called before the crawl runs.
func Start(o Options, c Crawl) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	instance := make([]byte, 16)
	if _, err := rand.Read(instance); err != nil {
		return nil, fmt.Errorf("start the API: %w", err)
	}
	s := &Server{
		o: o, only: c, closing: make(chan struct{}),
		instance: hex.EncodeToString(instance),
	}
	s.close = sync.OnceFunc(func() { close(s.closing) })
	s.guard = newGuard(&s.o, s.instance)
	var err error
	if s.open, err = s.handler(); err != nil {
		return nil, fmt.Errorf("start the API: %w", err)
	}
	if o.Listen != "" {
		if err := s.listen(); err != nil {
			return nil, err
		}
		s.serving.Go(s.serve)
	}
	if o.Division == nil {
		s.only.Observe(s.observers())
	} else {
		o.Division.Observe(s.observers())
		s.serving.Go(s.serveNodes)
	}
	s.serving.Go(s.keepHistory)
	return s, nil
}

// serveNodes answers the nodes of a division until the server closes.
func (s *Server) serveNodes() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.serving.Go(func() {
		<-s.closing
		cancel()
	})
	s.o.Division.Serve(ctx, s.ofCrawl, s.ofNode())
}

// listen begins to listen for clients.
func (s *Server) listen() error {
	var err error
	if s.o.TLSCert != "" {
		if s.identity, err = listen.NewIdentity(s.o.TLSCert, s.o.TLSKey, s.announce); err != nil {
			return fmt.Errorf("server.tls_cert: %w", err)
		}
	}
	listener, err := net.Listen("tcp", s.o.Listen)
	if err != nil {
		return err
	}
	s.address = listener.Addr()
	s.guard.address = s.address.String()
	s.gate = listen.NewGate(listener, maxConnections)
	certificate := ""
	if s.identity != nil {
		certificate = s.identity.Fingerprint()
	}
	if err := s.announce(certificate); err != nil {
		return errors.Join(fmt.Errorf("start the API: %w", err), listener.Close())
	}
	s.http = &http.Server{
		Handler:           s.gate.AtWork(s.guard.around(s.open)),
		ConnContext:       s.gate.ConnContext,
		ConnState:         s.gate.ConnState,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    mostHeader,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	return nil
}

// observers are the receivers of requests and commits.
func (s *Server) observers() crawl.Observers {
	if s.o.Metrics == nil {
		return crawl.Observers{&s.feed}
	}
	return crawl.Observers{&s.feed, s.o.Metrics}
}

// serve runs until Close.
func (s *Server) serve() {
	if s.identity == nil {
		_ = s.http.Serve(s.gate) // always ends with ErrServerClosed
		return
	}
	s.http.TLSConfig = s.identity.Config()
	_ = s.http.ServeTLS(s.gate, "", "")
}

// announce writes the address file. certificate is the fingerprint of the certificate; empty: there
// is none.
func (s *Server) announce(certificate string) error {
	return writeAddress(s.o.DataDir, s.address.String(), s.instance, certificate)
}

// Address returns where the server listens, as host:port; empty if only nodes are answered.
func (s *Server) Address() string {
	if s.address == nil {
		return ""
	}
	return s.address.String()
}

// Close stops listening, lets responses in progress end for as long as ctx allows, and then breaks
// them off. No goroutine is left.
func (s *Server) Close(ctx context.Context) (err error) {
	s.close()
	if s.http != nil {
		if err = removeAddress(s.o.DataDir); s.http.Shutdown(ctx) != nil {
			err = errors.Join(err, s.http.Close())
		}
	}
	s.serving.Wait()
	return err
}
