//go:build !core

package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"golang.org/x/time/rate"

	"github.com/amble-crawler/amble/internal/modules/urlfrontier"
	"github.com/amble-crawler/amble/internal/modules/urlfrontier/health"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/service/listen"
)

// ErrExposed reports that other machines could reach the service without protection.
var ErrExposed = errors.New("other machines can reach it")

// Options say where the service listens and who may use it.
type Options struct {
	Listen    string           // host:port; port 0: any free port
	Token     string           // of clients; empty: every client may do everything
	TLSCert   string           // file of the certificate chain, PEM; empty: plain HTTP
	TLSKey    string           // file of its key, PEM
	Plaintext bool             // beyond loopback too it needs neither a certificate nor a token
	Metrics   *Metrics         // nil: nothing is counted
	SetLevel  func(slog.Level) // sets the level of the log; nil: it cannot be set
	Log       *slog.Logger     // required
	Now       func() time.Time // the clock; required
	Limits    Limits           // zero: DefaultLimits
}

// Service serves until it is closed. Its methods may be called concurrently.
type Service struct {
	o        Options
	crawls   Crawls
	address  net.Addr
	gate     *listen.Gate
	identity *listen.Identity // nil: plain HTTP
	failures *listen.Limiters // wrong tokens
	errors   *connect.ErrorWriter
	http     *http.Server
	serving  sync.WaitGroup
	closing  context.Context // ends when Close begins
	close    context.CancelFunc

	token          atomic.Pointer[string]
	streams, calls atomic.Int64  // at work
	memory         *budget       // for the messages of streams with puts
	decoding       chan struct{} // has one for each message that is being decoded
	inactive       atomic.Bool
	next           atomic.Uint32 // counts GetURLs, so that each begins with another crawl
	skipped        skipLog
	turns          turns // of the hosts of queues
}

// Start listens and serves in a goroutine until Close. An error means that it does not run; it
// wraps the system's error, such as syscall.EADDRINUSE. ErrExposed: other machines could reach it
// without protection.
func Start(o Options, crawls Crawls) (*Service, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	s := &Service{
		o: o, crawls: crawls, failures: listen.NewLimiters(failureBurst, failuresPerSecond, o.Now),
		memory: newBudget(o.Limits.Held), decoding: make(chan struct{}, runtime.GOMAXPROCS(0)),
		errors: connect.NewErrorWriter(), skipped: skipLog{log: o.Log, limiter: rate.NewLimiter(skipLines, skipBurst)},
	}
	s.token.Store(&o.Token)
	var err error
	if o.TLSCert != "" {
		if s.identity, err = listen.NewIdentity(o.TLSCert, o.TLSKey, nil); err != nil {
			return nil, fmt.Errorf("urlfrontier.tls_cert: %w", err)
		}
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, err
	}
	s.address = listener.Addr()
	s.gate = listen.NewGate(listener, o.Limits.Connections)
	s.closing, s.close = context.WithCancel(context.Background())
	s.http = s.server()
	s.serving.Go(s.restoreActive)
	s.serving.Go(s.serve)
	return s, nil
}

// check refuses an address beyond loopback without protection. The settings explain this in detail.
func (o *Options) check() error {
	switch {
	case o.Now == nil || o.Log == nil:
		return errors.New("start the URLFrontier service: Options.Now or Options.Log is missing")
	case listen.IsLoopback(o.Listen) || o.Plaintext:
	case o.Token == "" || o.TLSCert == "":
		return fmt.Errorf("listen on %s: %w: it needs a token and a certificate, or Options.Plaintext", o.Listen,
			ErrExposed)
	}
	return nil
}

// server returns the HTTP server with all handlers.
func (s *Service) server() *http.Server {
	l := &s.o.Limits
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(s.identity != nil)
	protocols.SetUnencryptedHTTP2(s.identity == nil)
	h := &http.Server{
		Handler:     s.gate.AtWork(s.guarded(s.handler())),
		ConnContext: s.gate.ConnContext,
		ConnState:   s.gate.ConnState,
		Protocols:   protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: l.ConnectionStreams, MaxReceiveBufferPerConnection: 256 << 10,
			MaxReceiveBufferPerStream: 256 << 10, SendPingTimeout: l.Silence,
			PingTimeout: l.Call, WriteByteTimeout: l.Send,
		},
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       l.IdleConnection,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	if s.identity != nil {
		h.TLSConfig = s.identity.Config()
	}
	return h
}

// handler serves the RPCs.
func (s *Service) handler() http.Handler {
	l := &s.o.Limits
	options := []connect.HandlerOption{
		connect.WithInterceptors(s.o.Metrics, timing{l.Send}), connect.WithRecover(s.recovered),
		connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
			most := l.Request
			switch spec.Procedure {
			case urlfrontierpb.URLFrontierPutURLsProcedure:
				most = l.Item
			case urlfrontierpb.URLFrontierPutDiscoveredProcedure:
				most = l.Batch
			}
			return []connect.HandlerOption{connect.WithReadMaxBytes(most)}
		}),
	}
	mux := http.NewServeMux()
	mux.Handle(urlfrontierpb.NewURLFrontierHandler(s, options...))
	mux.Handle(health.NewHealthHandler(&healthService{s}, options...))
	reflector := grpcreflect.NewStaticReflector(urlfrontierpb.URLFrontierName, health.HealthName)
	mux.Handle(grpcreflect.NewHandlerV1(reflector, options...))
	mux.Handle(grpcreflect.NewHandlerV1Alpha(reflector, options...))
	return mux
}

// recovered ends an RPC that panicked.
func (s *Service) recovered(_ context.Context, spec connect.Spec, _ http.Header, p any) error {
	s.o.Log.Error("an RPC of the URLFrontier service panicked", "rpc", spec.Procedure, "panic", fmt.Sprint(p))
	return connect.NewError(connect.CodeInternal, errors.New("amble itself failed"))
}

// SetToken replaces the token, for RPCs from now on. If other machines can reach the service and it may
// not be open to them, it ignores an empty one.
func (s *Service) SetToken(token string) {
	if token != "" || listen.IsLoopback(s.o.Listen) || s.o.Plaintext {
		s.token.Store(&token)
	}
}

// serve runs until Close.
func (s *Service) serve() {
	if s.identity != nil {
		_ = s.http.ServeTLS(s.gate, "", "")
		return
	}
	_ = s.http.Serve(s.gate) // always ends with ErrServerClosed
}

// Address returns where the service listens, as host:port.
func (s *Service) Address() string { return s.address.String() }

// Close stops listening. RPCs that have begun end: what has come over the streams with puts is
// committed and acknowledged, for as long as ctx allows, and then the rest is broken off. No goroutine
// is left.
func (s *Service) Close(ctx context.Context) error {
	s.close()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.serving.Wait()
	return err
}

// restoreActive takes over whether the frontier is active, which the default crawl keeps.
func (s *Service) restoreActive() {
	c, release, err := s.crawls.Use(s.closing, urlfrontier.DefaultCrawl, false)
	if err != nil {
		return // it was never set
	}
	defer release()
	s.inactive.CompareAndSwap(false, !c.Active())
}

// each calls do with every crawl, as long as there is no error.
func (s *Service) each(ctx context.Context, do func(Crawl) error) error {
	ids, err := s.crawls.IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.with(ctx, id, false, do); err != nil && !errors.Is(err, ErrNoCrawl) {
			return err
		}
	}
	return nil
}

// with calls do with a crawl.
func (s *Service) with(ctx context.Context, id string, create bool, do func(Crawl) error) error {
	c, release, err := s.crawls.Use(ctx, crawlID(id), create)
	if err != nil {
		return err
	}
	defer release()
	return do(c)
}
