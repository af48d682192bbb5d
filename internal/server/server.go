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
	"time"

	"golang.org/x/net/netutil"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/inspect"
)

// Bounds of what a client may cost.
const (
	maxConnections = 128
	maxHeader      = 16 << 10
	maxBody        = 64 << 10
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
}

// Options say where the server listens and who may ask.
type Options struct {
	Listen  string           // host:port; port 0 takes a free one
	Token   string           // clients have to present it; empty: none is asked for
	DataDir string           // of the crawl; the address is written to a file there
	Now     func() time.Time // for the time that a piece of a stream may take; nil: any
}

// Server answers until it is closed. Its methods may be called concurrently.
type Server struct {
	crawl    Crawl
	token    string
	dataDir  string
	now      func() time.Time
	instance string
	address  net.Addr
	http     *http.Server
	serving  sync.WaitGroup
}

// Start listens and answers in a goroutine of its own until Close. An error means that it does not run; it wraps that of the system,
// such as syscall.EADDRINUSE.
func Start(o Options, c Crawl) (*Server, error) {
	instance := make([]byte, 16)
	if _, err := rand.Read(instance); err != nil {
		return nil, fmt.Errorf("start the API: %w", err)
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, err
	}
	s := &Server{crawl: c, token: o.Token, dataDir: o.DataDir, now: o.Now, instance: hex.EncodeToString(instance), address: listener.Addr()}
	if err := writeAddress(o.DataDir, s.address.String(), s.instance); err != nil {
		return nil, errors.Join(fmt.Errorf("start the API: %w", err), listener.Close())
	}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	s.serving.Go(func() { _ = s.http.Serve(netutil.LimitListener(listener, maxConnections)) }) // always ends with ErrServerClosed
	return s, nil
}

// Address is where the server listens, as host:port.
func (s *Server) Address() string { return s.address.String() }

// Close stops listening, lets answers that are being written end for as long as ctx allows, and then breaks them off. No
// goroutine is left.
func (s *Server) Close(ctx context.Context) error {
	err := removeAddress(s.dataDir)
	if s.http.Shutdown(ctx) != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.serving.Wait()
	return err
}
