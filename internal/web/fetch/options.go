package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/web/spool"
)

// Options bound what one request may cost and where it may go. Start from
// [DefaultOptions]; a zero limit is an error, never "no limit".
type Options struct {
	// UserAgent is sent as User-Agent (RFC 9110, section 10.1.5). Required.
	UserAgent string
	// From is sent as From (RFC 9110, section 10.1.2) unless empty: a mail address of the operator.
	From string
	// Accept is sent as Accept (RFC 9110, section 12.5.1) unless empty.
	Accept string

	// Headers are sent with every request. A header named Accept replaces Accept.
	Headers []Header
	// Credentials are sent to the hosts that each names. The first that names a host is used.
	Credentials []Credential
	// CookieHosts are the hosts whose cookies are kept, until Close, and sent back.
	CookieHosts []HostPattern
	// Signer proves who sends a request. Nil: nothing does.
	Signer Signer
	// ContentTypes are the wanted media ranges, such as text/*. The body of another type is not
	// read, and the request fails with KindTypeNotWanted. Redirects and error responses may have
	// any type. Empty: all.
	ContentTypes []string

	// Timeout bounds a whole request, from dialling to the last body byte.
	Timeout time.Duration
	// ConnectTimeout bounds the TCP connection, TLSTimeout the handshake,
	// HeaderTimeout the wait from the request sent to the header's last byte,
	// BodyIdleTimeout the wait for each further piece of the body.
	ConnectTimeout, TLSTimeout, HeaderTimeout, BodyIdleTimeout time.Duration
	// MinRate is the least rate of a response in bytes per second, from its first byte on, over 10
	// s. It does not hold while this machine's line is slow. 0: any.
	MinRate int64
	// ResolveTimeout bounds one call of Resolve.
	ResolveTimeout time.Duration

	// MaxHeader bounds the bytes of the response header, including interim responses.
	MaxHeader int64
	// MaxBody bounds the body, both on the wire and decoded. A longer body is cut there, and the
	// response is marked Truncated.
	MaxBody int64

	// Spool holds the bodies. Nil: they are in memory, whatever their number.
	Spool *spool.Pool
	// Capture keeps every request and response as they went over the wire, in Response.Wire.
	Capture bool

	// MaxIdleConns bounds the idle connections kept for reuse, IdleTimeout how long each is kept. One
	// with TLS counts twice. MaxIdleConns 0 keeps none.
	MaxIdleConns int
	IdleTimeout  time.Duration

	// AllowPrivate permits loopback, private, link-local and other special
	// addresses. AllowRanges permits only those named, DenyRanges forbids
	// addresses always and wins over both.
	AllowPrivate            bool
	AllowRanges, DenyRanges []netip.Prefix
	// Ports are the ports that may be dialled. Empty: all that browsers connect to.
	Ports []uint16

	// Family says which of a host's addresses are dialled.
	Family Family
	// Proxy is http://HOST:PORT or socks5://HOST:PORT. All requests go through it, and the proxy
	// resolves the names: the addresses of hosts are neither known nor checked. Empty: none.
	Proxy string
	// ProxyAuth is USER:PASSWORD for the proxy. Empty: none.
	ProxyAuth string

	// Resolver is the host:port of the DNS server. Empty: the system's.
	Resolver string

	// ResolveCache is how many names are cached with their addresses, for their time to live. 0:
	// none.
	ResolveCache int

	// Dial makes all connections, those to name servers and proxies too. Nil: the system does. It
	// is for tests in virtual time.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// TLSConfig is the base of every TLS handshake; its ServerName and
	// NextProtos are overwritten. Nil: system roots.
	TLSConfig *tls.Config
	// CAFile is a PEM file with certificates of authorities to trust besides the system's. Empty:
	// none.
	CAFile string
	// HTTP2 offers HTTP/2 in the TLS handshake.
	HTTP2 bool
}

// DefaultOptions returns the options for a crawler of the public web. The caller sets UserAgent.
func DefaultOptions() Options {
	return Options{
		Accept:          "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5",
		Timeout:         30 * time.Second,
		ConnectTimeout:  10 * time.Second,
		TLSTimeout:      10 * time.Second,
		HeaderTimeout:   20 * time.Second,
		BodyIdleTimeout: 10 * time.Second,
		ResolveTimeout:  10 * time.Second,
		MinRate:         256,
		MaxHeader:       64 << 10,
		MaxBody:         10 << 20,
		MaxIdleConns:    1024,
		IdleTimeout:     90 * time.Second,
		ResolveCache:    20_000,
		HTTP2:           true,
	}
}

// Validate reports the first option that cannot be used, by its name.
func (o Options) Validate() error {
	if strings.TrimSpace(o.UserAgent) == "" {
		return fmt.Errorf("fetch: UserAgent is empty: name the crawler and a way to reach its operator")
	}
	for _, h := range []struct{ name, value string }{
		{"UserAgent", o.UserAgent}, {"From", o.From}, {"Accept", o.Accept},
	} {
		if !validHeaderValue(h.value) {
			return fmt.Errorf("fetch: %s %q: only printable ASCII can be sent in a header", h.name, h.value)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Timeout", o.Timeout}, {"ConnectTimeout", o.ConnectTimeout}, {"TLSTimeout", o.TLSTimeout},
		{"HeaderTimeout", o.HeaderTimeout}, {"BodyIdleTimeout", o.BodyIdleTimeout},
		{"ResolveTimeout", o.ResolveTimeout}, {"IdleTimeout", o.IdleTimeout},
	} {
		if d.value <= 0 {
			return fmt.Errorf("fetch: %s %v: must be more than 0", d.name, d.value)
		}
	}
	if o.MaxHeader < 1<<10 || o.MaxHeader > 1<<24 {
		return fmt.Errorf("fetch: MaxHeader %d: must be from 1 KiB to 16 MiB", o.MaxHeader)
	}
	if o.MaxBody < 1 || o.MaxBody > maxBodyLimit {
		return fmt.Errorf("fetch: MaxBody %d: must be from 1 to %d bytes", o.MaxBody, int64(maxBodyLimit))
	}
	if o.MaxIdleConns < 0 || o.ResolveCache < 0 || o.MinRate < 0 {
		return fmt.Errorf("fetch: MaxIdleConns %d, ResolveCache %d, MinRate %d: must not be negative",
			o.MaxIdleConns, o.ResolveCache, o.MinRate)
	}
	return errors.Join(o.validateResolver(), o.validateFields())
}

// validateFields checks the header fields, and the hosts that they go to.
func (o Options) validateFields() error {
	for _, h := range o.Headers {
		if err := h.validate(); err != nil {
			return fmt.Errorf("fetch: Headers: %w", err)
		}
	}
	for _, c := range o.Credentials {
		if c.field.name == "" {
			return errors.New("fetch: Credentials: one is empty; make them with ParseCredential")
		}
	}
	for _, t := range o.ContentTypes {
		if !ValidMediaRange(t) {
			return fmt.Errorf("fetch: ContentTypes: %q is no media range such as text/*", t)
		}
	}
	if int(o.Family) >= len(families()) {
		return fmt.Errorf("fetch: Family %d is not known", o.Family)
	}
	if _, err := newProxyServer(o); err != nil {
		return fmt.Errorf("fetch: Proxy: %w", err)
	}
	return nil
}

// maxBodyLimit keeps one body in memory well below what an int can index.
const maxBodyLimit = 1 << 30

func (o Options) validateResolver() error {
	if o.Resolver == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(o.Resolver)
	if err != nil {
		return fmt.Errorf("fetch: Resolver %q: must be host:port, such as 9.9.9.9:53: %w", o.Resolver, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
		return fmt.Errorf("fetch: Resolver %q: must be host:port, such as 9.9.9.9:53", o.Resolver)
	}
	return nil
}

// validHeaderValue is stricter than RFC 9110, section 5.5: no obs-text, since
// servers disagree about its meaning.
func validHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}
