package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

// relay copies both ways until one side ends.
func relay(a, b net.Conn) {
	var wg sync.WaitGroup
	for _, ends := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			_, _ = io.Copy(ends[0], ends[1])
			a.Close()
			b.Close()
		})
	}
	wg.Wait()
}

// connectProxy is an HTTP proxy for CONNECT. It takes every name for loopback.
func connectProxy(t *testing.T, user string) (*server, chan string) {
	seen := make(chan string, 10)
	return serve(t, func(c net.Conn, r *bufio.Reader) {
		head := readHead(r)
		seen <- head
		words := strings.Fields(head)
		switch {
		case len(words) < 2 || words[0] != "CONNECT":
			return
		case user != "" && !strings.Contains(head, "\r\nProxy-Authorization: "+basic(user)+"\r\n"):
			fmt.Fprint(c, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
			return
		}
		_, port, _ := net.SplitHostPort(words[1])
		to, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			fmt.Fprint(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
			return
		}
		fmt.Fprint(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		relay(c, to)
	}), seen
}

func viaProxy(scheme string, s *server) func(*Options) {
	return func(o *Options) { o.Proxy = fmt.Sprintf("%s://%s", scheme, s.Addr()) }
}

func TestTLSThroughHTTPProxy(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		target, trust := secure(t, http2, http.HandlerFunc(func(w http.ResponseWriter,
			r *http.Request) {
			fmt.Fprint(w, r.Host)
		}))
		proxy, seen := connectProxy(t, "me:secret")
		c := newClient(t, quick(trust, viaProxy("http", proxy), func(o *Options) {
			o.ProxyAuth, o.AllowPrivate = "me:secret", false
		}))
		port := securePort(target.Listener)
		for range 2 {
			r, err := c.Do(context.Background(), Request{URL: parseURL(t, fmt.Sprintf("https://example.com:%d/", port)),
				Address: standIn("example.com")})
			must.Do(t, err)
			assert.True(t, text(t, r) == fmt.Sprintf("example.com:%d", port) && !r.RemoteAddr.IsValid(), "%q from %v",
				text(t, r), r.RemoteAddr)
		}
		if head := <-seen; !strings.HasPrefix(head,
			fmt.Sprintf("CONNECT example.com:%d HTTP/1.1\r\nHost: example.com:%d\r\n",
				port, port)) {
			t.Errorf("head %q", head)
		}
		assert.Equal(t, proxy.accepted(), 1, "connections")
	}
}

func TestPlainHTTPThroughHTTPProxy(t *testing.T) {
	proxy, seen := heads(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	c := newClient(t, quick(viaProxy("http", proxy), func(o *Options) { o.ProxyAuth, o.Capture = "me:", true }))
	r, err := c.Do(context.Background(), Request{URL: parseURL(t, "http://far.test/a?b"), Address: standIn("far.test")})
	must.Do(t, err)
	head := <-seen
	assert.True(t, strings.HasPrefix(head, "GET http://far.test/a?b HTTP/1.1\r\nHost: far.test\r\n") &&
		strings.Contains(head, "\r\nProxy-Authorization: Basic bWU6\r\n"), "head %q", head)
	sent, _ := r.Wire.Request.Load(nil, 1<<20)
	assert.True(t, !strings.Contains(string(sent), "Proxy-Authorization"), "captured %q", sent)
}

// socksProxy speaks as much of RFC 1928 and RFC 1929 as it takes. It takes every name for loopback.
func socksProxy(t *testing.T, user string) (*server, chan string) {
	seen := make(chan string, 10)
	return serve(t, func(c net.Conn, r *bufio.Reader) {
		hello := make([]byte, 2)
		if _, err := io.ReadFull(r, hello); err != nil {
			return
		}
		_, _ = io.ReadFull(r, make([]byte, hello[1]))
		if user == "" {
			_, _ = c.Write([]byte{5, 0})
		} else {
			_, _ = c.Write([]byte{5, 2})
			_, _ = r.ReadByte()
			var words []string
			for range 2 {
				n, _ := r.ReadByte()
				b := make([]byte, n)
				_, _ = io.ReadFull(r, b)
				words = append(words, string(b))
			}
			if strings.Join(words, ":") != user {
				_, _ = c.Write([]byte{1, 1})
				return
			}
			_, _ = c.Write([]byte{1, 0})
		}
		head := make([]byte, 5)
		if _, err := io.ReadFull(r, head); err != nil || head[3] != 3 {
			return
		}
		name := make([]byte, head[4])
		_, _ = io.ReadFull(r, name)
		port := make([]byte, 2)
		_, _ = io.ReadFull(r, port)
		seen <- string(name)
		to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", binary.BigEndian.Uint16(port)))
		if err != nil {
			_, _ = c.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
			return
		}
		_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		relay(c, to)
	}), seen
}

func TestThroughSOCKS5(t *testing.T) {
	for _, user := range []string{"", "me:secret"} {
		target, _ := heads(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
		proxy, seen := socksProxy(t, user)
		c := newClient(t,
			quick(viaProxy("socks5", proxy), func(o *Options) { o.ProxyAuth, o.AllowPrivate = user, false }))
		r, err := c.Do(context.Background(), Request{URL: target.url(t, "/"), Address: standIn("site.test")})
		must.True(t, err == nil && text(t, r) == "hi", "%v", err)
		assert.Equal(t, <-seen, "site.test", "the proxy got the name")
	}
}

func TestProxyFailures(t *testing.T) {
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed.Close()
	strict, _ := connectProxy(t, "me:secret")
	open, _ := connectProxy(t, "")
	unauthorized := serve(t, answer("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"))
	chatty := serve(t, answer("HTTP/1.1 200 OK\r\n\r\nmore than that"))
	endless := serve(t, forever("HTTP/1.1 200 OK\r\n", "X: "+strings.Repeat("y", 1000)+"\r\n", 0))
	socks, _ := socksProxy(t, "")
	other := serve(t, func(c net.Conn, _ *bufio.Reader) { fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	for name, tt := range map[string]struct {
		proxy, url string
		kind       Kind
	}{
		"not there":          {"http://" + closed.Addr().String(), "https://a.test/", KindProxy},
		"not there, socks":   {"socks5://" + closed.Addr().String(), "https://a.test/", KindProxy},
		"wants a password":   {"http://" + strict.Addr().String(), "https://a.test/", KindProxy},
		"wants one, plain":   {"http://" + unauthorized.Addr().String(), "http://a.test/", KindProxy},
		"cannot connect":     {"http://" + open.Addr().String(), "https://a.test:1/", KindProxy},
		"cannot, socks":      {"socks5://" + socks.Addr().String(), "http://a.test:1/", KindProxy},
		"no socks":           {"socks5://" + other.Addr().String(), "http://a.test/", KindProxy},
		"says too much":      {"http://" + chatty.Addr().String(), "https://a.test/", KindProxy},
		"header without end": {"http://" + endless.Addr().String(), "https://a.test/", KindProxy},
		"loopback":           {"http://" + open.Addr().String(), "https://127.0.0.1/", KindBlockedAddress},
		"metadata":           {"http://" + open.Addr().String(), "http://169.254.169.254/", KindBlockedAddress},
		"localhost":          {"http://" + open.Addr().String(), "http://x.localhost/", KindBlockedAddress},
		"port":               {"http://" + open.Addr().String(), "http://a.test:22/", KindBlockedAddress},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, quick(func(o *Options) {
				o.Proxy, o.AllowPrivate, o.Ports, o.TLSConfig = tt.proxy, false, []uint16{80, 443, 1}, &tls.Config{}
			}))
			_, err := c.Do(context.Background(),
				Request{URL: parseURL(t, tt.url), Address: netip.MustParseAddr("fd00::1")})
			e := wantKind(t, err, tt.kind)
			assert.Equal(t, e.Sent, name == "wants one, plain", "sent")
		})
	}
}

// With a proxy no name is resolved here, and every host has an address of its own.
func TestResolveWithProxy(t *testing.T) {
	ns := serveDNS(t, zone{})
	c := newClient(t, quick(func(o *Options) {
		o.Resolver, o.Proxy, o.AllowPrivate = ns.address, "http://127.0.0.1:3128", false
	}))
	one, err := c.Resolve(context.Background(), "one.test", false)
	two, err2 := c.Resolve(context.Background(), "two.test", false)
	assert.True(t, err == nil && err2 == nil && len(one.Addrs) == 1 && one.Addrs[0] != two.Addrs[0] &&
		one.Addrs[0].IsPrivate(), "%v %v %v %v", one, two, err, err2)
	p, q := netip.PrefixFrom(one.Addrs[0], 64).Masked(), netip.PrefixFrom(two.Addrs[0], 64).Masked()
	assert.True(t, p != q, "both are in %v", p)
	assert.Fails(c.Resolve(context.Background(), "10.0.0.1", false))(t, nil, "a private address is resolved")
	assert.AtMost(t, len(ns.queries), 0, "queries", ns.queries)
	for text, ok := range map[string]bool{"http://p.test": true, "socks5://127.0.0.1:1080": true,
		"http://[::1]:3128/": true, "https://p.test": false,
		"p.test:3128": false, "http://u:p@p.test": false, "http://p.test/x": false, "http://p.test:0": false,
		"http://": false} {
		assert.Equal(t, (ParseProxy(text) == nil), ok, text)
	}
}

func TestURLForLibraries(t *testing.T) {
	u := asURL(parseURL(t, "https://a.test:8443/x/y?q=1"))
	assert.True(t, u.String() == "https://a.test:8443/x/y?q=1" && u.Path == "/x/y", "%v", u)
}
