package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

// dialer makes connections to pinned addresses. It is immutable and safe for
// concurrent use.
type dialer struct {
	reach                      *reach
	proxy                      *proxyServer // nil: none
	userAgent                  string
	dialContext                func(ctx context.Context, network, address string) (net.Conn, error)
	tls                        *tls.Config
	connectTimeout, tlsTimeout time.Duration
	capture                    bool
	maxHeader                  int64
	now                        func() time.Time
	line                       *line
	h2                         *http.Transport // for http.ClientConn; dials nothing; nil: no HTTP/2
}

func newDialer(o Options, r *reach, p *proxyServer, now func() time.Time) (*dialer, error) {
	d := &dialer{reach: r, proxy: p, userAgent: o.UserAgent,
		connectTimeout: o.ConnectTimeout, tlsTimeout: o.TLSTimeout, capture: o.Capture, now: now, line: newLine(now)}
	system := &net.Dialer{KeepAlive: -1}
	if p == nil { // a proxy is where the operator says, private or not
		system.Control = d.control
	}
	if d.dialContext = o.Dial; o.Dial == nil {
		d.dialContext = system.DialContext
	}
	var err error
	if d.tls, err = tlsConfig(o); err != nil {
		return nil, err
	}
	d.maxHeader = o.MaxHeader
	if o.HTTP2 {
		d.h2 = newHTTP2(o.MaxHeader)
	}
	return d, nil
}

// tlsConfig is the base of every handshake.
func tlsConfig(o Options) (*tls.Config, error) {
	config := &tls.Config{}
	if o.TLSConfig != nil {
		config = o.TLSConfig.Clone()
	}
	if config.ClientSessionCache == nil {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(128)
	}
	if o.CAFile != "" {
		var err error
		if config.RootCAs, err = readCAs(o.CAFile); err != nil {
			return nil, fmt.Errorf("fetch: CAFile: %w", err)
		}
	}
	return config, nil
}

// readCAs reads the certificates in a PEM file and adds them to those that the
// system trusts.
func readCAs(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate in PEM form is in it", file)
	}
	return roots, nil
}

// control checks the address again that the kernel is about to connect to.
func (d *dialer) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", errBlocked, err)
	}
	return d.reach.check(ap)
}

// dial connects to key.addr and, for https, does the TLS handshake for key.host, and offers HTTP/2
// if http2 is set. The returned release is that of watch.interrupt.
func (d *dialer) dial(w *watch, key connKey, http2 bool) (_ *conn, release func() bool, err error) {
	w.enter(phaseConnect, d.connectTimeout)
	key.host = strings.Clone(key.host) // it outlives the URL that it is a part of
	// DialTCP would bind a separate port to each connection, and search longer for a free one the
	// more there are.
	start := d.now()
	tcp, err := d.dialContext(w.ctx, "tcp", d.address(key))
	if err != nil {
		return nil, nil, d.blame(err)
	}
	if d.proxy == nil { // the proxy may be on this machine
		d.line.trip(d.now().Sub(start))
	}
	c := &conn{key: key, tcp: tcp, wire: newMeter(tcp, w.account.shared)}
	c.rw = c.wire
	release = w.interrupt(c.wire)
	if d.proxy != nil {
		if err := d.proxy.open(w.ctx, c, key.port, d.userAgent); err != nil {
			release()
			c.close()
			return nil, nil, err
		}
	}
	if key.scheme == "https" {
		w.enter(phaseTLS, d.tlsTimeout)
		if err := d.secure(w.ctx, c, http2); err != nil {
			release()
			c.close()
			return nil, nil, err
		}
	}
	if d.capture {
		c.tap = &tap{Conn: c.rw}
	}
	if c.h2 == nil {
		c.head = &headReader{Conn: c.rw}
		if c.tap != nil {
			c.head.Conn = c.tap
		}
	}
	return c, release, nil
}

// address returns the address to dial.
func (d *dialer) address(key connKey) string {
	if d.proxy != nil {
		return d.proxy.address
	}
	return key.remote().String()
}

// blame attributes an error of dialling to the proxy or to the host.
func (d *dialer) blame(err error) error {
	if d.proxy != nil {
		return &proxyError{err}
	}
	return err
}

// protocols returns the protocols that a handshake offers.
func (d *dialer) protocols(http2 bool) []string {
	if http2 && d.h2 != nil {
		return []string{"h2", "http/1.1"}
	}
	return []string{"http/1.1"}
}

// secure puts TLS over the connection and, where the server picked it, HTTP/2.
func (d *dialer) secure(ctx context.Context, c *conn, http2 bool) error {
	config := d.tls.Clone()
	config.NextProtos = d.protocols(http2)
	config.ServerName = serverName(c.key.host)
	secured := tls.Client(c.wire, config)
	if err := secured.HandshakeContext(context.WithoutCancel(ctx)); err != nil { // the watch interrupts it
		return err
	}
	c.rw = secured
	switch secured.ConnectionState().NegotiatedProtocol {
	case "", "http/1.1":
		return nil
	case "h2":
		var err error
		c.frames = &frames{Conn: c.tcp, maxHeader: d.maxHeader}
		c.frames.secured.Store(secured)
		c.h2, err = overHTTP2(ctx, d.h2, c.frames, c.key.host)
		return err
	default:
		return errors.New("the server picked a protocol that was not offered")
	}
}

// serverName returns the host in the form that TLS needs: no brackets around an IPv6 address, no
// dot at the end (RFC 6066, section 3).
func serverName(host string) string {
	host = strings.TrimSuffix(host, ".")
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
