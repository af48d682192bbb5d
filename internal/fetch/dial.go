package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// dialer makes connections to pinned addresses. It is immutable and safe for
// concurrent use.
type dialer struct {
	reach                      *reach
	net                        net.Dialer
	tls                        *tls.Config
	connectTimeout, tlsTimeout time.Duration
	capture                    bool
	h2                         *http.Transport // turns a TLS connection into an http.ClientConn; dials nothing
}

func newDialer(o Options, r *reach) *dialer {
	d := &dialer{reach: r, connectTimeout: o.ConnectTimeout, tlsTimeout: o.TLSTimeout, capture: o.Capture}
	d.net = net.Dialer{KeepAlive: -1, Control: d.control}
	d.tls = &tls.Config{}
	if o.TLSConfig != nil {
		d.tls = o.TLSConfig.Clone()
	}
	if d.tls.ClientSessionCache == nil {
		d.tls.ClientSessionCache = tls.NewLRUClientSessionCache(128)
	}
	d.tls.NextProtos = []string{"http/1.1"}
	if o.HTTP2 && !o.Capture {
		d.tls.NextProtos = []string{"h2", "http/1.1"}
		d.h2 = newHTTP2(o.MaxHeader)
	}
	return d
}

// control looks once more at the address the kernel is about to connect to.
func (d *dialer) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", errBlocked, err)
	}
	return d.reach.check(ap)
}

// dial connects to key.addr and, for https, shakes hands for key.host. The
// returned release is that of watch.interrupt.
func (d *dialer) dial(w *watch, key connKey) (_ *conn, release func() bool, err error) {
	w.enter(phaseConnect, d.connectTimeout)
	key.host = strings.Clone(key.host) // it outlives the URL it is a part of
	// DialTCP would bind a port of its own to every connection, each usable for one
	// server only, and search for a free one longer the more there are.
	dialled, err := d.net.DialContext(w.ctx, "tcp", key.addr.String())
	if err != nil {
		return nil, nil, err
	}
	tcp := dialled.(*net.TCPConn)
	c := &conn{key: key, tcp: tcp, wire: &meter{Conn: tcp}}
	c.rw = c.wire
	release = w.interrupt(tcp)
	if key.scheme == "https" {
		w.enter(phaseTLS, d.tlsTimeout)
		if err := d.secure(w.ctx, c); err != nil {
			release()
			c.close()
			return nil, nil, err
		}
	}
	if c.h2 == nil {
		c.head = &headReader{Conn: c.rw}
		if d.capture {
			c.tap = &tap{Conn: c.rw}
			c.head.Conn = c.tap
		}
		c.br = bufio.NewReader(c.head)
	}
	return c, release, nil
}

// secure puts TLS over the connection and, where the server picked it, HTTP/2.
func (d *dialer) secure(ctx context.Context, c *conn) error {
	config := d.tls.Clone()
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
		c.h2, err = overHTTP2(ctx, d.h2, secured, c.key.host)
		return err
	default:
		return errors.New("the server picked a protocol that was not offered")
	}
}

// serverName is the host as TLS wants it: no brackets around an IPv6 address,
// no dot at the end (RFC 6066, section 3).
func serverName(host string) string {
	host = strings.TrimSuffix(host, ".")
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
