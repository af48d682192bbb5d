package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/weburl"
)

// Client makes requests. It is safe for concurrent use. Its clock only stamps
// responses and errors; the bounds in time are those of the machine.
type Client struct {
	o        Options
	now      func() time.Time
	fixed    []field
	reach    *reach
	dialer   *dialer
	pool     *pool
	resolver *net.Resolver

	resolutions *resolutions
	line        *line

	proxy   *way     // nil: none
	cookies *cookies // nil: none are kept
}

// New returns a client. The error is that of [Options.Validate], or of reading
// Options.CAFile.
func New(o Options, now func() time.Time) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := newReach(o)
	proxy, err := newWay(o)
	if err != nil {
		return nil, err
	}
	dialer, err := newDialer(o, r, proxy)
	if err != nil {
		return nil, err
	}
	return &Client{
		o:        o,
		now:      now,
		fixed:    fixedFields(o),
		reach:    r,
		dialer:   dialer,
		proxy:    proxy,
		cookies:  newCookies(o.CookieHosts),
		pool:     newConnPool(o.MaxIdleConns, o.IdleTimeout),
		resolver: newResolver(o),

		resolutions: newResolutions(o.ResolveCache),
		line:        dialer.line,
	}, nil
}

// Close closes the idle connections. Requests under way end as they would, and
// their connections are closed then. No goroutine is left after both.
func (c *Client) Close() { c.pool.close() }

// Request is one GET.
type Request struct {
	// URL is what to ask for; it is sent byte for byte as it reads.
	URL weburl.URL
	// Address is where to ask, and the only address that is dialled. With a proxy
	// nothing but the proxy is.
	Address netip.Addr
	// ETag and LastModified are the validators of a stored response, sent as
	// If-None-Match and If-Modified-Since (RFC 9110, section 13.1) unless empty.
	ETag, LastModified string
	// MaxBody bounds the body in bytes. 0: Options.MaxBody.
	MaxBody int64
	// AnyType takes a body of any type, whatever Options.ContentTypes says.
	AnyType bool
	// Progress, unless nil, tells how the request is doing.
	Progress *Progress
}

// Response is a whole response, whatever its status. Close gives back the memory
// and the files that Body and Wire take.
type Response struct {
	Status int
	// Proto is "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0".
	Proto string
	// Header is as received; Content-Encoding names what Body no longer has.
	Header http.Header
	// Body is decoded. Truncated means that it goes on beyond MaxBody.
	Body      *spool.Content
	Truncated bool
	// NewCookies means that cookies were kept of it, which the next request brings.
	NewCookies bool
	// Wire is what went over the wire. Nil without Options.Capture.
	Wire *Wire
	// Start is when the request began (dialling included), Connected when there was
	// a connection, FirstByte when the answer began, End when the body had been read.
	Start, Connected, FirstByte, End time.Time
	// WireBytes counts what was received, header and TLS framing included.
	WireBytes int64
	// RemoteAddr is the address that was really asked. Zero with a proxy, which
	// does not tell.
	RemoteAddr netip.AddrPort
}

// Close gives back what the response holds. Neither Body nor Wire may be used
// after it. An error means that a file could not be closed; nothing is to be done
// about it.
func (r *Response) Close() error { return errors.Join(r.Body.Close(), r.Wire.close()) }

// Do makes exactly one request, or none: [Error].Sent tells which when it fails.
// Every error is an *[Error]. A response of any final status is no error, and
// a redirect is a response like others. The caller closes the response.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	start := c.now()
	defer r.Progress.end()
	w := newWatch(ctx, c.o.Timeout)
	w.pace.c = c
	defer w.stop()
	resp, sent, err := c.do(w, r)
	if err != nil {
		kind, cause := w.classify(err)
		return nil, &Error{Kind: kind, Op: w.phase.op(), URL: r.URL.String(), Sent: sent,
			Start: start, End: c.now(), Err: cause}
	}
	resp.Start, resp.End = start, c.now()
	return resp, nil
}

// do connects, asks once and reads the answer. sent reports whether bytes of
// the request may have left.
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
		if untouched := release(); clean && untouched {
			cn.reused = true
			c.pool.put(cn, c.now())
		} else {
			cn.close()
		}
	}()

	written, read := cn.wire.written.Load(), cn.wire.read.Load()
	fields := c.fields(r)
	resp, firstByte, err := c.exchange(w, cn, r, fields, limit)
	if err != nil {
		var lost *lostError
		if errors.As(err, &lost) {
			c.pool.broke(cn.key, c.now())
		}
		return nil, cn.wire.written.Load() > written, err
	}
	if cn.h2 != nil {
		defer resp.Body.Close() // over HTTP/1.1 that would read the rest of an endless body
	}
	kept := c.cookies.take(r.URL, resp.Header)
	if err := c.accept(r, resp); err != nil {
		return nil, true, err
	}
	w.pace.begin(0)
	body, truncated, ended, err := c.readBody(w, resp, limit)
	if err != nil {
		return nil, true, err
	}
	clean = ended && cn.reusable(resp)
	answer := &Response{
		Status: resp.StatusCode, Proto: resp.Proto, Header: resp.Header,
		Body: body, Truncated: truncated, NewCookies: kept, Connected: connected, FirstByte: firstByte,
		WireBytes:  cn.wire.read.Load() - read,
		RemoteAddr: cn.key.remote(),
	}
	if cn.tap != nil {
		if answer.Wire, err = c.captured(cn, r, fields, resp, truncated); err != nil {
			return nil, true, errors.Join(err, answer.Close())
		}
	}
	return answer, true, nil
}

// accept refuses a response whose body is of no use.
func (c *Client) accept(r Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusProxyAuthRequired && c.proxy.forwards(r.URL.Scheme()) {
		return &proxyError{errors.New("it asks for credentials that it has not been given")}
	}
	return c.checkType(r, resp)
}

// captured is the exchange that cn has just carried.
func (c *Client) captured(cn *conn, r Request, fields []field, resp *http.Response, truncated bool) (*Wire, error) {
	response, cut, err := cn.tap.end(cn.br)
	if err != nil {
		return nil, err
	}
	truncated = truncated || cut
	packed, err := encodings(resp.Header)
	plain := err == nil && len(packed) == 0 && len(resp.TransferEncoding) == 0 && !truncated
	open := slices.DeleteFunc(fields, func(f field) bool { return f.secret })
	return &Wire{Request: spool.Of(c.requestHead(r, open)), Response: response, Plain: plain, Truncated: truncated}, nil
}

// exchange sends the request over cn and awaits the header of its response.
func (c *Client) exchange(w *watch, cn *conn, r Request, fields []field, limit int64) (resp *http.Response, firstByte time.Time, err error) {
	if cn.h2 == nil {
		return c.exchange1(w, cn, r, fields, limit)
	}
	start := time.Now()
	if resp, err = c.exchange2(w, cn, r, fields); err == nil {
		c.line.trip(start)
	}
	return resp, c.now(), err
}

// connect returns a connection that was pinned to the address of r, or makes
// one.
func (c *Client) connect(w *watch, r Request) (*conn, func() bool, error) {
	key := connKey{scheme: r.URL.Scheme(), host: r.URL.Host(), port: r.URL.Port()}
	w.enter(phaseConnect, c.o.ConnectTimeout)
	if err := c.checkReach(r); err != nil {
		return nil, nil, err
	}
	if c.proxy == nil {
		key.addr = r.Address.Unmap()
	}
	if cn := c.pool.take(key); cn != nil {
		return cn, w.interrupt(cn.tcp), nil
	}
	return c.dialer.dial(w, key)
}

// checkReach refuses a request that leads where none may go. What a proxy makes
// of a name cannot be known here; addresses are looked at all the same.
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

// check refuses what cannot be sent and returns the bound of the body.
func (c *Client) check(r Request) (limit int64, err error) {
	limit = r.MaxBody
	if limit == 0 {
		limit = c.o.MaxBody
	}
	switch {
	case r.URL.IsZero():
		return 0, &unsupportedError{"the request has no URL"}
	case limit < 0 || limit > maxBodyLimit:
		return 0, &unsupportedError{fmt.Sprintf("MaxBody %d is out of range", r.MaxBody)}
	case !sendable(r.URL.RequestURI()) || !sendable(r.URL.HostPort()):
		return 0, &unsupportedError{"the URL has bytes that HTTP cannot carry"}
	}
	return limit, nil
}

// sendable reports whether s can stand in a request line: a space or a control
// character there would start another field, or another request.
func sendable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return s != ""
}

// reusable reports whether cn may carry another request after resp, whose body
// was read to its end.
func (c *conn) reusable(resp *http.Response) bool {
	if c.h2 != nil {
		return c.alive()
	}
	return !resp.Close && c.br.Buffered() == 0
}
