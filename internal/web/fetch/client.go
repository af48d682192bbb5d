package fetch

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/web/httpfield"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// Client makes requests. It is safe for concurrent use. Its clock stamps responses and errors, and says how long a
// request has lasted when one of its timers rings; timers follow the clock of the machine.
type Client struct {
	o      Options
	now    func() time.Time
	fixed  []field
	reach  *reach
	dialer *dialer
	pool   *pool

	resolver    *net.Resolver
	sockets     *querySockets
	hostsFile   *net.Resolver
	resolutions *resolutions
	benches     chan *bench // those that decode no body now
	line        *line
	bandwidth   *bandwidth
	readers     sync.Pool // of *bufio.Reader: see lendReader

	proxy   *proxyServer // nil: none
	cookies *cookies     // nil: no cookies are kept
}

// New returns a client. It returns the error of [Options.Validate], or of reading Options.CAFile.
func New(o Options, now func() time.Time) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := newReach(o)
	proxy, err := newProxyServer(o)
	if err != nil {
		return nil, err
	}
	dialer, err := newDialer(o, r, proxy, now)
	if err != nil {
		return nil, err
	}
	kept, sockets := newConnPool(o.MaxIdleConns, o.IdleTimeout), &querySockets{now: now}
	return &Client{
		o:       o,
		now:     now,
		fixed:   fixedFields(o),
		reach:   r,
		dialer:  dialer,
		proxy:   proxy,
		cookies: newCookies(o.CookieHosts),
		pool:    kept,

		resolver:    newResolver(o, sockets, kept.closeIdle),
		sockets:     sockets,
		hostsFile:   newHostsFile(),
		resolutions: newResolutions(o.ResolveCache),
		benches:     newBenches(),
		line:        dialer.line,
		bandwidth:   newBandwidth(now),
	}, nil
}

// Close closes the idle connections. Requests under way end normally and then close their
// connections. No goroutine is left after that.
func (c *Client) Close() {
	c.pool.close()
	c.sockets.close()
}

// CloseIdle closes the idle connections and sockets and reports whether there were any.
func (c *Client) CloseIdle() bool {
	sockets := c.sockets.closeIdle()
	return c.pool.closeIdle() || sockets
}

// Do makes exactly one request, or none: [Error].Sent tells which when it fails. Every error is an
// *[Error]. A response of any final status is no error; redirects are responses like others. The
// caller closes the response.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	start := c.now()
	a := &account{shared: c.bandwidth, host: r.URL.Host()}
	r.Progress.begin(a)
	defer r.Progress.end()
	w := newWatch(ctx, c.o.Timeout, a, c.now)
	w.pace.c, w.pace.account = c, a
	a.permit = w.guard(r.Permit)
	defer w.stop()
	resp, sent, err := c.do(w, r)
	c.bandwidth.release(a, c.now())
	if err != nil {
		kind, cause := w.classify(err)
		failure := &Error{Kind: kind, Op: w.phase.op(), URL: r.URL.String(), Sent: sent,
			Start: start, End: c.now(), Throttled: a.waited(), Header: w.header, Err: cause, Partial: resp}
		if resp != nil {
			resp.Start, resp.End, resp.Throttled = failure.Start, failure.End, failure.Throttled
		}
		return nil, failure
	}
	resp.Start, resp.Throttled = start, a.waited()
	return resp, nil
}

// do connects, sends the request once and reads the response. sent reports whether bytes of the
// request may have left. A response that comes with an error is an Error.Partial.
func (c *Client) do(w *watch, r Request) (_ *Response, sent bool, err error) {
	limit, err := c.check(r)
	if err != nil {
		return nil, false, err
	}
	cn, release, err := c.connect(w, r)
	if err != nil {
		return nil, false, err
	}
	r.Progress.connected(cn.wire)
	connected, clean := c.now(), false
	defer func() {
		cn.tap.abandon()
		c.takeReader(cn)
		if cn.frames != nil {
			cn.frames.end()
		}
		switch untouched := release(); {
		case clean && untouched:
			cn.reused = true
			c.pool.put(cn, c.now())
		case w.ctx.Err() != nil:
			cn.abort()
		default:
			cn.close()
		}
	}()

	written, read := cn.wire.written.Load(), cn.wire.read.Load()
	fields, signed := c.sign(r.URL, c.fields(r))
	resp, firstByte, err := c.exchange(w, cn, r, fields, limit)
	if err != nil {
		return nil, cn.wire.written.Load() > written, c.excuse(w, cn, err)
	}
	if cn.h2 != nil {
		defer resp.Body.Close() // over HTTP/1.1 that would read the rest of an endless body
	}
	httpfield.Settle(resp.Header, c.now())
	w.header = resp.Header
	kept := c.cookies.take(r.URL, resp.Header)
	if c.asksSignature(r.URL, signed, resp) {
		return nil, true, errSignatureAsked
	}
	if err := c.accept(r, resp); err != nil {
		return nil, true, err
	}
	w.pace.begin(0)
	answer := &Response{
		Status: resp.StatusCode, Proto: resp.Proto, Header: resp.Header, NewCookies: kept,
		Connected: connected, FirstByte: firstByte, RemoteAddr: cn.key.remote(),
	}
	list, failed := encodings(resp.Header)
	if r.HeaderOnly {
		list, failed, limit = nil, nil, 0
	}
	var body *spool.Content
	var cut bool
	if failed == nil {
		body, cut, failed = c.receive(w, cn, resp, limit)
	}
	if failed == nil {
		w.arrived()
		clean = !cut && cn.reusable(resp)
	}
	answer.End, answer.WireBytes = c.now(), cn.wire.read.Load()-read
	if cn.tap != nil {
		answer.Wire, err = c.captured(cn, r, fields, resp, cut || failed != nil)
		if err == nil && failed == nil && body == nil {
			body, err = c.keptBody(cn.tap, answer.Wire.Response)
		}
		if err != nil {
			return nil, true, errors.Join(cmp.Or(failed, err), body.Close(), answer.Wire.close())
		}
	}
	if failed == nil {
		answer.Body, answer.Truncated, failed = c.decode(w.ctx, body, list, limit, cut, r.CutAtBounds)
	}
	if failed == nil {
		return answer, true, nil
	}
	if answer.Truncated = true; answer.Wire == nil {
		return nil, true, failed // no captured bytes to return
	}
	return answer, true, failed
}

// accept refuses a response whose body is of no use.
func (c *Client) accept(r Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusProxyAuthRequired && c.proxy.forwards(r.URL.Scheme()) {
		return &proxyError{errors.New("it requires credentials: set the proxy's user and password")}
	}
	if resp.StatusCode == http.StatusNotModified && r.ETag == "" && r.LastModified == "" {
		return errNotModified
	}
	return c.checkType(r, resp)
}

// errNotModified is a 304 to a request without validators.
var errNotModified = errors.New("unexpected status 304: the request had no If-None-Match and no If-Modified-Since")

// captured returns the exchange that cn has just carried.
func (c *Client) captured(cn *conn, r Request, fields []field, resp *http.Response, truncated bool) (*Wire, error) {
	response, cut, err := cn.tap.end(cn.br)
	if err != nil {
		return nil, err
	}
	truncated = truncated || cut
	packed, err := encodings(resp.Header)
	plain := err == nil && len(packed) == 0 && !truncated
	request, isSecret := cn.tap.request, func(f field) bool { return f.secret }
	if slices.ContainsFunc(fields, isSecret) {
		request = c.requestHead(r, slices.DeleteFunc(fields, isSecret))
	}
	cn.tap.request = nil
	protocol := ""
	if cn.h2 != nil {
		protocol = "h2"
	}
	return &Wire{
		Protocol: protocol,
		Request:  spool.Of(request), Response: response,
		Chunked: slices.Contains(resp.TransferEncoding, "chunked"), Plain: plain, Truncated: truncated,
	}, nil
}

// exchange sends the request over cn and reads the header of its response.
func (c *Client) exchange(w *watch, cn *conn, r Request, fields []field,
	limit int64) (resp *http.Response, firstByte time.Time, err error) {
	if cn.h2 == nil {
		return c.exchange1(w, cn, r, fields, limit)
	}
	trip := w.trip()
	if resp, err = c.exchange2(w, cn, r, fields, limit); err == nil {
		c.line.trip(trip())
	}
	return resp, c.now(), err
}

// connect returns an idle connection that was pinned to the address of r, or dials one.
func (c *Client) connect(w *watch, r Request) (*conn, func() bool, error) {
	key := connKey{scheme: r.URL.Scheme(), host: r.URL.Host(), port: r.URL.Port()}
	w.enter(phaseConnect, c.o.ConnectTimeout)
	if w.account.permit != nil {
		if err := w.account.permit(); err != nil {
			return nil, nil, err
		}
	}
	if err := c.checkReach(r); err != nil {
		return nil, nil, err
	}
	if c.proxy == nil {
		key.addr = r.Address.Unmap()
	}
	if cn := c.pool.take(key); cn != nil {
		return cn, w.interrupt(cn.wire), nil
	}
	http2 := key.scheme == "https" && c.pool.http2(key, c.now())
	cn, release, err := c.dialer.dial(w, key, http2)
	if OutOfDescriptors(err) && c.pool.closeIdle() {
		cn, release, err = c.dialer.dial(w, key, http2)
	}
	return cn, release, err
}

// excuse marks a failure of an exchange that is not held against the server: the connection was a
// reused one, or the server refused the request unprocessed. That excuses a server once in a while.
// After it, each request to that server has its own connection, or uses HTTP/1.1, and a failure
// counts.
func (c *Client) excuse(w *watch, cn *conn, err error) error {
	excused := false
	switch kind, _ := w.classify(err); {
	case kind != KindReset && kind != KindClosed && kind != KindBadResponse && kind != KindHeaderTooLarge:
	case wantsHTTP1(err):
		excused = c.pool.wantsHTTP1(cn.key, c.now())
	case cn.reused || isUnprocessed(err):
		excused = c.pool.broke(cn.key, c.now()) || cn.reused
	}
	if excused {
		return &lostError{err}
	}
	return err
}

// checkReach refuses a request to an address or port that may not be dialled. The address that a
// proxy finds for a name is not known here, but an IP literal is checked even with a proxy.
func (c *Client) checkReach(r Request) error {
	if c.proxy == nil {
		return c.reach.check(netip.AddrPortFrom(r.Address.Unmap(), r.URL.Port()))
	}
	if err := c.reach.checkPort(r.URL.Port()); err != nil {
		return err
	}
	_, _, err := c.resolveByProxy(r.URL.Host())
	return err
}

// reusable reports whether cn may carry another request after resp, whose body
// was read to its end.
func (c *conn) reusable(resp *http.Response) bool {
	if c.h2 != nil {
		return c.alive()
	}
	return !resp.Close && c.br.Buffered() == 0
}
