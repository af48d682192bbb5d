package routes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
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
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHead,
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context,
			c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
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

// MaxCall bounds what Call sends and receives, in bytes.
const MaxCall = 1 << 20

// Call posts bytes to a path of a node, and returns those of the answer: see [Calls]. The errors are
// those of Do, and in words those of the other node.
func (r *Routes) Call(ctx context.Context, node, path string, body []byte) ([]byte, error) {
	request := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: path}, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).WithContext(ctx)
	response, err := r.Do(node, request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, MaxCall+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("node %s: %w", node, err)
	case len(answer) > MaxCall:
		return nil, fmt.Errorf("node %s answers more than %d bytes", node, MaxCall)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("node %s: %s: %s", node, response.Status, answer[:min(len(answer), 1<<10)])
	}
	return answer, nil
}

// Calls is a handler for Call. The body of the request was read. If f returns ErrNotOwner, so does Call.
func Calls(f func(request *http.Request, body []byte) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxCall))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := f(r, body)
		switch {
		case errors.Is(err, ErrNotOwner):
			RefuseShard(w)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(answer) // the other node may have gone
		}
	})
}
