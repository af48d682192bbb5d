package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Request is one GET or HEAD.
type Request struct {
	// URL is the URL to fetch. It is sent byte for byte.
	URL weburl.URL
	// Address is the address to connect to. No other address is dialled. With a proxy, only the
	// proxy is dialled.
	Address netip.Addr
	// ETag and LastModified are the validators of a stored response, sent as
	// If-None-Match and If-Modified-Since (RFC 9110, section 13.1) unless empty.
	ETag, LastModified string
	// Referer is sent as it is unless it is empty.
	Referer string
	// MaxBody bounds the body in bytes. 0: Options.MaxBody.
	MaxBody int64
	// AnyType takes a body of any type, whatever Options.ContentTypes says.
	AnyType bool
	// CutAtBounds cuts a body that takes too much to decode where it does, and marks the response
	// Truncated. Without it, or if nothing was decoded before, the request fails.
	CutAtBounds bool
	// HeaderOnly wants no body: it is not read, whatever its encoding. With Head the request is a HEAD, else the
	// connection is closed behind the header.
	HeaderOnly, Head bool
	// Progress, unless nil, reports how far the request is.
	Progress *Progress
	// Permit, unless nil, is called before the request connects, and before each piece that it
	// writes, those of the TLS handshake included. If it returns an error nothing more is written,
	// and the request fails with KindCanceled and that error. It may be called concurrently and must
	// not block.
	Permit func() error
}

// method returns the method of the request.
func (r *Request) method() string {
	if r.Head {
		return http.MethodHead
	}
	return http.MethodGet
}

// Response is a whole response of any status. Close frees the memory and the files that Body and
// Wire take.
type Response struct {
	Status int
	// Proto is "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0".
	Proto string
	// Header is as received, except for fields that count only once and came more often: see
	// httpfield.Settle. Content-Encoding names the encodings that were removed from Body.
	Header http.Header
	// Body is decoded. Truncated means that the body goes on beyond MaxBody.
	Body      *spool.Content
	Truncated bool
	// NewCookies means that the response set cookies, which the next request sends.
	NewCookies bool
	// Wire is the exchange as it went over the wire. It is nil without Options.Capture.
	Wire *Wire
	// Start is when the request began (dialling included), Connected when the connection was ready,
	// FirstByte when the response began, and End when the body had been received.
	Start, Connected, FirstByte, End time.Time
	// Throttled is the time between Start and End for which the request waited for bandwidth: see
	// SetBandwidth.
	Throttled time.Duration
	// WireBytes counts the bytes received, header and TLS framing included.
	WireBytes int64
	// RemoteAddr is the address that served the request. It is zero with a proxy, which does not
	// report it.
	RemoteAddr netip.AddrPort
}

// Close frees what the response holds. Neither Body nor Wire may be used after it. An error means
// that a file could not be closed; the caller can do nothing about it.
func (r *Response) Close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.Body.Close(), r.Wire.close())
}

// check refuses a request that cannot be sent, and returns the bound of the body.
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
