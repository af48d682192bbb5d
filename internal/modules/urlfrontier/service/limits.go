//go:build !core

package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/modules/urlfrontier/health"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/service/listen"
)

// Limits bound what clients may cost.
type Limits struct {
	Connections       int // at a time; one more closes the one that was idle longest
	ConnectionStreams int // RPCs at a time of one connection
	Streams           int // RPCs with streams at a time
	Calls             int // other RPCs at a time

	Request int // bytes of the request of an RPC
	Item    int // bytes of a message of PutURLs
	Batch   int // bytes of a message of PutDiscovered

	Items   int   // messages of a PutURLs that are not acknowledged
	Batches int   // messages of a PutDiscovered that are not acknowledged
	Stream  int64 // bytes of memory for them, for one stream; one message may exceed it
	Held    int64 // bytes of memory for them, for all streams together
	Lease   int   // URLs of one GetURLs

	Call           time.Duration // for the request of an RPC to arrive, and for an answer to a ping
	Send           time.Duration // for the client to take what is sent
	Idle           time.Duration // a stream with puts that is silent for as long ends
	IdleConnection time.Duration // a connection without an RPC for as long is closed
	Silence        time.Duration // a connection from which nothing comes is pinged
}

// DefaultLimits returns the limits in use. A stream may have four times as many messages without an
// acknowledgement as with the reference implementation: some are read while others are committed.
func DefaultLimits() Limits {
	return Limits{
		Connections: 256, ConnectionStreams: 100, Streams: 256, Calls: 256,
		Request: 64 << 10, Item: 1 << 20, Batch: 4 << 20,
		Items: 4096, Batches: 64, Stream: 32 << 20, Held: 96 << 20, Lease: 10_000,
		Call: 30 * time.Second, Send: 30 * time.Second, Idle: 6 * time.Hour, IdleConnection: 10 * time.Minute,
		Silence: time.Minute,
	}
}

const (
	maxHeader     = 32 << 10 // of a request
	headerTimeout = 5 * time.Second
	// After too many wrong tokens, right ones are refused for a while too.
	failureBurst, failuresPerSecond = 20, 1.0 / 6
)

// call is what the handlers need to know of the HTTP request of an RPC.
type call struct {
	now     func() time.Time
	fetcher string // the name of the client as a fetcher
	writer  *batchWriter
	inlet   *inlet // the body of the request

	mu      sync.Mutex
	control *http.ResponseController // guarded by mu; nil: the request is over
}

// batchWriter is the writer of a response whose flushes can be held back, so that messages that are
// sent in a row leave together. The goroutine that writes owns it.
type batchWriter struct {
	http.ResponseWriter
	held bool
}

// Unwrap returns the writer to http.ResponseController.
func (w *batchWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *batchWriter) Flush() {
	if !w.held {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// together calls send, whose messages leave the process together, when it returns at the latest. The
// error is that of send, or why they cannot leave.
func (c *call) together(send func() error) error {
	c.writer.held = true
	err := send()
	c.writer.held = false
	if err != nil {
		return err
	}
	return http.NewResponseController(c.writer.ResponseWriter).Flush()
}

type callKey struct{}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// mustRead ends the reading of the request d from now; 0: it has no end. Transports that cannot do
// that have limits of their own.
func (c *call) mustRead(d time.Duration) {
	c.with(func(r *http.ResponseController) { _ = r.SetReadDeadline(c.after(d)) })
}

// mustWrite ends the writing of the response d from now; 0: it has no end.
func (c *call) mustWrite(d time.Duration) {
	c.with(func(r *http.ResponseController) { _ = r.SetWriteDeadline(c.after(d)) })
}

// stopReading ends the reading of the request now.
func (c *call) stopReading() {
	c.with(func(r *http.ResponseController) { _ = r.SetReadDeadline(time.Unix(1, 0)) })
}

// with calls do, unless the request is over.
func (c *call) with(do func(*http.ResponseController)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control != nil {
		do(c.control)
	}
}

// end says that the request is over. Nothing may be done with its response from then on.
func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.control = nil
}

func (c *call) after(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return c.now().Add(d)
}

// timing bounds the time of RPCs without a stream: for their response, as guarded does for the request.
type timing struct{ send time.Duration }

// WrapUnary implements connect.Interceptor.
func (t timing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		c := callOf(ctx)
		c.mustRead(0) // it has come
		response, err := next(ctx, r)
		c.mustWrite(t.send)
		return response, err
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (t timing) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor. Streams have limits of their own.
func (t timing) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// isStreaming reports whether an RPC may last as long as its client wants.
func isStreaming(path string) bool {
	switch path {
	case urlfrontierpb.URLFrontierPutURLsProcedure, urlfrontierpb.URLFrontierPutDiscoveredProcedure,
		urlfrontierpb.URLFrontierGetURLsProcedure, urlfrontierpb.URLFrontierListURLsProcedure,
		health.HealthWatchProcedure:
		return true
	}
	return strings.HasPrefix(path, "/grpc.reflection.")
}

// guarded puts the guards around the handler: the token, the number of RPCs, the time for reading the
// request.
func (s *Service) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(r); err != nil {
			s.refuse(w, r, err)
			return
		}
		l := &s.o.Limits
		count, most := &s.calls, l.Calls
		if isStreaming(r.URL.Path) {
			count, most = &s.streams, l.Streams
		}
		defer count.Add(-1)
		if count.Add(1) > int64(most) {
			s.refuse(w, r, connect.NewError(connect.CodeResourceExhausted, errors.New("too many RPCs at a time")))
			return
		}
		b := &batchWriter{ResponseWriter: w}
		c := &call{
			control: http.NewResponseController(w), now: s.o.Now, fetcher: fetcherName(r.RemoteAddr), writer: b,
			inlet: &inlet{body: r.Body},
		}
		r.Body = c.inlet
		defer c.end()
		c.mustRead(l.Call)
		c.mustWrite(0) // a connection of HTTP/1 keeps that of the request before
		next.ServeHTTP(b, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	})
}

// admit checks whether a client may use the service. Without a token, requests of browsers are refused:
// a page of another site could have sent them.
func (s *Service) admit(r *http.Request) error {
	if s.closing.Err() != nil {
		return errClosing()
	}
	token := *s.token.Load()
	if token == "" {
		if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
			return connect.NewError(connect.CodePermissionDenied, errors.New("browsers may use this service only if "+
				"urlfrontier.token is set"))
		}
		return nil
	}
	client, sent := listen.ClientOf(r, false), r.Header.Get("Authorization") != ""
	if sent && s.failures.Exhausted(client) {
		return connect.NewError(connect.CodeResourceExhausted,
			errors.New("too many wrong tokens from your address: wait a little"))
	}
	if listen.SameToken(listen.TokenOf(r), token) {
		return nil
	}
	if sent {
		s.failures.Allow(client)
	}
	return connect.NewError(connect.CodeUnauthenticated,
		errors.New("send the token, urlfrontier.token of the settings, as metadata authorization: Bearer TOKEN"))
}

// refuse ends an RPC before it begins.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.o.Metrics.refused(r.URL.Path, connect.CodeOf(err))
	_ = s.errors.Write(w, r, err)
}

// errClosing is the error of RPCs when the service ends.
func errClosing() error {
	return connect.NewError(connect.CodeUnavailable, errors.New("amble is shutting down"))
}

// fetcherName returns the name of the fetcher that a client is, by its address.
func fetcherName(peer string) string {
	name := "urlfrontier-" + strings.Map(func(c rune) rune {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', c == '.':
			return c
		}
		return '-'
	}, strings.Trim(listen.HostOf(peer), "[]"))
	return name[:min(len(name), remote.MaxFetcherName)]
}

// skipLog logs why items are skipped, at a bounded rate.
type skipLog struct {
	log     *slog.Logger
	limiter *rate.Limiter

	mu   sync.Mutex
	left int // not logged since the last line; guarded by mu
}

// The rate of the lines about skipped items.
const (
	skipLines = rate.Limit(0.2) // a second
	skipBurst = 5
)

func (l *skipLog) skipped(now time.Time, reason outcome, url, key string, detail error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.limiter.AllowN(now, 1) {
		l.left++
		return
	}
	args := []any{"reason", reason.String(), "url", shortened(url), "key", shortened(key), "not_logged", l.left}
	if detail != nil {
		args = append(args, "detail", detail)
	}
	l.log.Warn("an item of a URLFrontier client is not taken", args...)
	l.left = 0
}

// shortened cuts long text for the log.
func shortened(text string) string {
	const most = 200
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// isEnd reports whether an error of a stream is its regular end.
func isEnd(err error) bool { return errors.Is(err, io.EOF) }
