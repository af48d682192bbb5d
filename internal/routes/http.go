package routes

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
)

// Bounds of the times of a request that a handler does not set itself.
const (
	headTimeout  = 10 * time.Second
	bodyTimeout  = 30 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = time.Minute
)

// ErrNotOwner means that the node does not own the shard of the request. It has done nothing.
var ErrNotOwner = errors.New("the node does not own the shard")

// notOwner is the header of a response that stands for ErrNotOwner.
const notOwner = "Amble-Not-Owner"

// RefuseShard answers a request for a shard that this node does not own. The error of Do is then
// ErrNotOwner.
func RefuseShard(w http.ResponseWriter) {
	w.Header().Set(notOwner, "true")
	http.Error(w, ErrNotOwner.Error(), http.StatusMisdirectedRequest)
}

// Serve serves requests of other nodes, and those of this node to itself, until the context ends. Then
// it breaks them off. When it has returned, no handler runs.
func (r *Routes) Serve(ctx context.Context, h http.Handler) {
	ctx, end := context.WithCancel(ctx)
	var open sync.WaitGroup
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headTimeout, ReadTimeout: bodyTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHead, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // in the goroutine that accepts
				open.Add(1)
			case http.StateClosed:
				open.Done()
			}
		},
	}
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		_ = s.Close() // of connections that nobody waits for
		close(ended)
	})
	_ = s.Serve(r.listener()) // always ends with an error
	end()
	<-ended
	open.Wait()
}

type connKey struct{}

// BreakOff closes the connection of a request that Serve serves, so that its handler cannot block.
func BreakOff(request context.Context) {
	if c, ok := request.Value(connKey{}).(net.Conn); ok {
		_ = c.Close()
	}
}

// Do sends a request to a node; of its URL path and query count. The error is ErrUnreachable,
// ErrNotOwner, that of the context, or says why the connection was broken: then nobody knows whether the
// other node has done something.
func (r *Routes) Do(node string, request *http.Request) (*http.Response, error) {
	request.URL.Scheme, request.URL.Host, request.Host = "http", node, node
	response, err := r.transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	if response.Header.Get(notOwner) != "" {
		return nil, errors.Join(fmt.Errorf("node %s: %w", node, ErrNotOwner), response.Body.Close())
	}
	return response, nil
}
