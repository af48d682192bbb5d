// Package server answers questions about a running crawl over HTTP, on the address server.listen.
//
// docs/API.md describes it for people, /api/v1/openapi.json for programs. The operations are registered with huma, which checks what comes in and
// makes the description; each file registers those of one subject (hosts.go, urls.go, control.go and so on). Tests hold every answer against the
// description.
//
// Lists come in pages that take no walk over the store. Streams are JSON objects, one a line (application/jsonl), and come at the client's pace. If an answer
// cannot be completed the connection breaks. An error is an application/problem+json object (RFC 9457).
//
// # Who may ask
//
// The guards stand around everything, in this order: how often a client may ask, the name in the Host header (DNS rebinding), the origin of what
// changes something (cross-site requests), the token. /healthz and /readyz ask for no token. Headers, bodies, connections and times are bounded.
//
// # How to find it
//
// Start writes the address in use to the file server.addr in the data directory, and Close removes it. Ask reads
// that file and puts a question to the crawl it names. A file that a crash left behind does no harm: it also holds the
// identity of the process, every answer repeats it, and Ask believes no other.
package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/inspect"
)

// Bounds of what a client may cost.
const (
	maxConnections = 256
	maxHeader      = 32 << 10  // of a request, its first line included
	mostHeader     = 256 << 10 // beyond which net/http refuses it in its own words
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
	Add(context.Context, []crawl.Addition) (crawl.Added, error)
	Retry(context.Context, crawl.Selection, func(crawl.Retried) error) (crawl.Retried, error)
	CountRetries(context.Context, crawl.Selection, func(crawl.Retried) error) (crawl.Retried, error)
	Observe(crawl.Observer)
	Backup(ctx context.Context, w io.Writer, begin func(size int64)) (int64, error)
	Control
}

// Options say where the server listens and who may ask.
type Options struct {
	Listen      string           // host:port; port 0 takes a free one
	Token       string           // clients that may do everything present it; empty: everybody may
	ReadToken   string           // clients that may only look present it; empty: there is none
	Hosts       []string         // names in the Host header that lead here, beside those of loopback
	TLSCert     string           // file of the certificate chain, PEM; empty: plain HTTP
	TLSKey      string           // file of its key, PEM
	BehindProxy bool             // something in front does TLS, and says in X-Forwarded-For who asks
	Pprof       bool             // /debug/pprof/ is there, for those who may do everything
	Metrics     *Metrics         // nil: there is no /metrics
	Settings    Settings         // nil: they can be neither seen nor changed
	DataDir     string           // of the crawl; the address is written to a file there
	Version     string           // of the program, for the description of the API
	Now         func() time.Time // the clock; required
}

// Server answers until it is closed. Its methods may be called concurrently.
type Server struct {
	o        Options
	crawl    Crawl
	instance string
	tokens   atomic.Pointer[tokens]
	address  net.Addr
	api      huma.API // its operations
	gate     *gate
	requests *limiters
	failures *limiters // wrong tokens
	identity *identity // nil: plain HTTP
	http     *http.Server
	serving  sync.WaitGroup
	closing  chan struct{}
	close    func() // closes closing, once

	auditing sync.Mutex // held by the one audit that runs
	feed     feed
	watchers watchers
	recorder recorder
}

// Start listens and answers in a goroutine of its own until Close. An error means that it does not run; it wraps that of the system,
// such as syscall.EADDRINUSE. ErrExposed: others could reach it unprotected.
func Start(o Options, c Crawl) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	instance := make([]byte, 16)
	if _, err := rand.Read(instance); err != nil {
		return nil, fmt.Errorf("start the API: %w", err)
	}
	s := &Server{
		o: o, crawl: c, closing: make(chan struct{}), instance: hex.EncodeToString(instance),
		requests: newLimiters(requestBurst, requestsPerSecond, o.Now), failures: newLimiters(failureBurst, failuresPerSecond, o.Now),
	}
	s.SetTokens(o.Token, o.ReadToken)
	var err error
	if o.TLSCert != "" {
		if s.identity, err = newIdentity(o.TLSCert, o.TLSKey, s.announce); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, err
	}
	s.address = listener.Addr()
	s.gate = newGate(listener, maxConnections)
	handler, err := s.handler()
	if err == nil {
		certificate := ""
		if s.identity != nil {
			certificate = s.identity.fingerprint()
		}
		err = s.announce(certificate)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the API: %w", err), listener.Close())
	}
	s.http = &http.Server{
		Handler:           s.gate.atWork(handler),
		ConnContext:       s.gate.connContext,
		ConnState:         s.gate.connState,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    mostHeader,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	s.close = sync.OnceFunc(func() { close(s.closing) })
	s.crawl.Observe(s.observers())
	s.serving.Go(s.serve)
	s.serving.Go(s.keepHistory)
	return s, nil
}

// observers are who wants to hear of requests.
func (s *Server) observers() crawl.Observers {
	if s.o.Metrics == nil {
		return crawl.Observers{&s.feed}
	}
	return crawl.Observers{&s.feed, s.o.Metrics}
}

// serve ends with Close.
func (s *Server) serve() {
	if s.identity == nil {
		_ = s.http.Serve(s.gate) // always ends with ErrServerClosed
		return
	}
	s.http.TLSConfig = s.identity.config()
	_ = s.http.ServeTLS(s.gate, "", "")
}

// announce writes the address file. certificate is the fingerprint of that in force; empty: there is none.
func (s *Server) announce(certificate string) error {
	return writeAddress(s.o.DataDir, s.address.String(), s.instance, certificate)
}

// Address is where the server listens, as host:port.
func (s *Server) Address() string { return s.address.String() }

// Close stops listening, lets answers that are being written end for as long as ctx allows, and then breaks them off. No
// goroutine is left.
func (s *Server) Close(ctx context.Context) error {
	err := removeAddress(s.o.DataDir)
	s.close()
	if s.http.Shutdown(ctx) != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.serving.Wait()
	return err
}

// identity is the certificate that the server shows. A renewed one is taken up with the next handshake.
type identity struct {
	certFile, keyFile string
	renewed           func(fingerprint string) error // called before another certificate is in force

	mu       sync.Mutex
	modified [2]time.Time // of the files in use
	current  *tls.Certificate
}

func newIdentity(certFile, keyFile string, renewed func(fingerprint string) error) (*identity, error) {
	i := &identity{certFile: certFile, keyFile: keyFile, renewed: renewed}
	modified, err := i.stat()
	if err != nil {
		return nil, fmt.Errorf("server.tls_cert: %w", err)
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("server.tls_cert: %s and %s: %w", certFile, keyFile, err)
	}
	i.modified, i.current = modified, &certificate
	return i, nil
}

func (i *identity) stat() (modified [2]time.Time, err error) {
	for n, name := range []string{i.certFile, i.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return modified, err
		}
		modified[n] = info.ModTime()
	}
	return modified, nil
}

func (i *identity) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.certificate(), nil },
	}
}

// certificate is the one in force. Files that cannot be read, or do not fit together because one of them is still to come, leave it as it is.
func (i *identity) certificate() *tls.Certificate {
	i.mu.Lock()
	defer i.mu.Unlock()
	modified, err := i.stat()
	if err != nil || modified == i.modified {
		return i.current
	}
	fresh, err := tls.LoadX509KeyPair(i.certFile, i.keyFile)
	if err != nil {
		return i.current
	}
	if i.renewed(fingerprint(fresh.Certificate[0])) != nil {
		return i.current // clients that know the old one only could not find us
	}
	i.current, i.modified = &fresh, modified
	return i.current
}

// fingerprint names the certificate in force.
func (i *identity) fingerprint() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return fingerprint(i.current.Certificate[0])
}

// fingerprint is the SHA-256 of a certificate as it goes over the wire.
func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
