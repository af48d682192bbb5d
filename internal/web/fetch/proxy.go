package fetch

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/proxy"
)

// proxyError is a failure to reach the proxy, or of the proxy itself. The host did not fail.
type proxyError struct{ err error }

func (e *proxyError) Error() string { return "proxy: " + e.err.Error() }
func (e *proxyError) Unwrap() error { return e.err }

// way is the proxy that all connections go through. It is immutable.
type proxyServer struct {
	socks         bool   // SOCKS5 (RFC 1928), else HTTP (RFC 9110, section 9.3.6)
	address       string // host:port
	authorization string // value of Proxy-Authorization; empty: none
	user          *proxy.Auth
}

// ParseProxy checks a proxy as people write it: http://HOST:PORT or socks5://HOST:PORT. Its
// credentials are a separate option.
func ParseProxy(text string) error {
	_, err := newProxyServer(Options{Proxy: text})
	return err
}

// newWay returns the proxy of o, or nil if it has none.
func newProxyServer(o Options) (*proxyServer, error) {
	if o.Proxy == "" {
		return nil, nil
	}
	errProxy := errors.New("want http://HOST:PORT or socks5://HOST:PORT, without user and password")
	u, err := url.Parse(o.Proxy)
	if err != nil || (u.Scheme != "http" && u.Scheme != "socks5") || u.Hostname() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errProxy
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "8080", "socks5": "1080"}[u.Scheme]
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, errProxy
	}
	p := &proxyServer{socks: u.Scheme == "socks5", address: net.JoinHostPort(u.Hostname(), port)}
	if o.ProxyAuth != "" {
		user, password, _ := strings.Cut(o.ProxyAuth, ":")
		p.user = &proxy.Auth{User: user, Password: password}
		p.authorization = basic(o.ProxyAuth)
	}
	return p, nil
}

// forwards reports whether requests of the scheme go to the proxy with their whole URL, rather than
// through a tunnel.
func (p *proxyServer) forwards(scheme string) bool { return p != nil && !p.socks && scheme == "http" }

// open makes the proxy connect c, which leads to the proxy, to the host of key.
func (p *proxyServer) open(ctx context.Context, c *conn, port uint16, userAgent string) error {
	if p.forwards(c.key.scheme) {
		return nil
	}
	target := net.JoinHostPort(serverName(c.key.host), strconv.Itoa(int(port)))
	var err error
	if p.socks {
		err = p.openSocks(ctx, c.wire, target)
	} else {
		err = p.openTunnel(c.wire, target, userAgent)
	}
	if err != nil {
		return &proxyError{err}
	}
	return nil
}

func (p *proxyServer) openSocks(ctx context.Context, wire net.Conn, target string) error {
	d, err := proxy.SOCKS5("tcp", p.address, p.user, nil)
	if err != nil {
		return err
	}
	over, ok := d.(interface {
		DialWithConn(ctx context.Context, c net.Conn, network, address string) (net.Addr, error)
	})
	if !ok {
		return errors.New("SOCKS5 over a connection is not supported")
	}
	_, err = over.DialWithConn(context.WithoutCancel(ctx), wire, "tcp", target) // the watch interrupts it
	return err
}

// maxProxyHeader bounds the response to CONNECT.
const maxProxyHeader = 16 << 10

func (p *proxyServer) openTunnel(wire net.Conn, target, userAgent string) error {
	request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\nUser-Agent: " + userAgent + "\r\n"
	if p.authorization != "" {
		request += "Proxy-Authorization: " + p.authorization + "\r\n"
	}
	if _, err := wire.Write([]byte(request + "\r\n")); err != nil {
		return err
	}
	head := &headReader{Conn: wire}
	head.limit(maxProxyHeader)
	br := bufio.NewReader(head)
	resp, err := http.ReadResponse(br, &http.Request{Method: http.MethodConnect})
	switch {
	case err != nil:
		return err
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("it responds to CONNECT with status %d", resp.StatusCode)
	case br.Buffered() > 0:
		return errors.New("it sends more than a response to CONNECT")
	}
	return nil
}

// standIn returns an address that stands for a host whose addresses only the proxy knows: limits
// per address then hold per host. It is a unique local address (RFC 4193) and never dialled.
func standIn(host string) netip.Addr {
	sum := sha256.Sum256([]byte(host))
	var a [16]byte
	a[0] = 0xfd
	copy(a[1:8], sum[:])
	return netip.AddrFrom16(a)
}

// local reports whether a name stands for the machine that resolves it (RFC
// 6761, section 6.3), which with a proxy is the proxy.
func local(host string) bool {
	host = strings.TrimSuffix(host, ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
