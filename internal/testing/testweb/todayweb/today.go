// Package todayweb serves the web of today, for benchmarks: see Web. It is a test tool.
package todayweb

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// Web is a web with the sizes and the transport of today's pages, for benchmarks: TLS 1.3, HTTP/2
// on three hosts of four, gzip or Brotli on seven of eight, connections that end after some pages,
// some hosts that have only an IPv6 address. Every page of a host can be reached from its root.
// The same numbers always give the same pages.
type Web struct {
	Hosts int // at least 1
	Pages int // of one host, the root included; at least 1

	// PerConnection is the number of requests after which a connection ends. 0: it has no bound.
	PerConnection int
	// Sizes are the sizes of pages in bytes. Zero: those of DefaultSizes.
	Sizes Lognormal
}

// Lognormal is a distribution of sizes by its median and its mean, which is larger.
type Lognormal struct{ Median, Mean float64 }

// DefaultSizes are the sizes of HTML documents before compression.
var DefaultSizes = Lognormal{Median: 138e3, Mean: 242e3}

// draw returns the size for a standard normal variate, at most the 8 MiB that a crawler reads.
func (l Lognormal) draw(normal float64) int {
	sigma := math.Sqrt(2 * math.Log(l.Mean/l.Median))
	return min(int(l.Median*math.Exp(sigma*normal)), 8<<20)
}

// TotalPages returns the number of pages of all hosts.
func (t Web) TotalPages() int { return t.Hosts * t.Pages }

// Host returns the name of host number h, from 0.
func (t Web) Host(h int) string { return fmt.Sprintf("h%d.today.test", h) }

// todayVariants is the number of different hosts: host h has the same pages as host h + todayVariants.
const todayVariants = 32

// onlyIPv6 reports whether a host has no IPv4 address.
func (t Web) onlyIPv6(h int) bool { return h%16 == 15 }

// encoding returns the content coding of a host.
func (t Web) encoding(h int) string {
	switch h % 8 {
	case 0:
		return ""
	case 1, 2, 3, 4:
		return "gzip"
	default:
		return "br"
	}
}

// New starts the web. It keeps no record of requests except their number. On a system
// without IPv6 all hosts have IPv4 addresses.
func New(t Web) (*testweb.Web, error) {
	t.Hosts, t.Pages = max(t.Hosts, 1), max(t.Pages, 1)
	if t.Sizes == (Lognormal{}) {
		t.Sizes = DefaultSizes
	}
	authority, err := testweb.NewAuthority(time.Now())
	if err != nil {
		return nil, err
	}
	c := testweb.Config{Sites: make([]testweb.Site, t.Hosts), CountOnly: true, Authorities: authority.PEM()}
	for h := range c.Sites {
		c.Sites[h].Host = t.Host(h)
	}
	w, err := testweb.NewWith(c, func(s *http.Server) testweb.Server { return t.secure(s, authority) })
	if err != nil {
		return nil, err
	}
	pages, err := t.render(w)
	if err = errors.Join(err, t.listenIPv6(w)); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	for h := range t.Hosts {
		w.SetHandler(t.Host(h), todayHost{&t, pages[h%len(pages)]})
	}
	return w, nil
}

// listenIPv6 moves some hosts to ::1, which is the only IPv6 address of a loopback.
func (t Web) listenIPv6(w *testweb.Web) error {
	l, err := net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(int(w.Port()))))
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		return nil
	} else if err != nil {
		return fmt.Errorf("todayweb: listen: %w", err)
	}
	var hosts []string
	for h := range t.Hosts {
		if t.onlyIPv6(h) {
			hosts = append(hosts, t.Host(h))
		}
	}
	w.Move(l, netip.IPv6Loopback(), hosts...)
	return nil
}

// tlsServer is an http.Server whose listeners carry TLS.
type tlsServer struct{ *http.Server }

// Serve handles connections to l until Close.
func (s tlsServer) Serve(l net.Listener) error { return s.ServeTLS(l, "", "") }

// robotsText is the robots.txt of each host.
const robotsText = "User-agent: *\nDisallow: /private/\n"

// requestsKey is the context key of the number of requests of a connection.
type requestsKey struct{}

// secure has a server speak TLS, with a certificate for each host.
func (t Web) secure(s *http.Server, a *testweb.Authority) testweb.Server {
	s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, requestsKey{}, new(atomic.Int64))
	}
	certificates := make(map[string]*tls.Config, t.Hosts)
	base := &tls.Config{MinVersion: tls.VersionTLS13}
	for h := range t.Hosts {
		c, err := a.Certificate(t.Host(h), time.Now())
		if err != nil {
			continue // the handshake of the host fails, and the benchmark with it
		}
		own := base.Clone()
		own.Certificates = []tls.Certificate{*c}
		if own.NextProtos = []string{"h2", "http/1.1"}; h%4 == 0 {
			own.NextProtos = own.NextProtos[1:]
		}
		certificates[t.Host(h)] = own
	}
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if c := certificates[hello.ServerName]; c != nil {
				return c, nil
			}
			return nil, fmt.Errorf("no such host: %q", hello.ServerName)
		}}
	return tlsServer{s}
}

// todayHost serves the pages of a host.
type todayHost struct {
	web   *Web
	pages []todayPage
}

// todayPage is a page as it is, or compressed.
type todayPage struct {
	coding string
	body   []byte
	size   int // before compression
}

// ServeHTTP serves a page or the robots.txt.
func (s todayHost) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	header := rw.Header()
	requests, _ := r.Context().Value(requestsKey{}).(*atomic.Int64)
	if n := s.web.PerConnection; requests != nil && n > 0 && requests.Add(1) >= int64(n) {
		header.Set("Connection", "close") // over HTTP/2 the server sends GOAWAY
	}
	header.Set("Server", "todayweb")
	header.Set("Cache-Control", "max-age=0, must-revalidate")
	header.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Vary", "Accept-Encoding")
	if r.URL.Path == "/robots.txt" {
		header.Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(rw, robotsText)
		return
	}
	i := 0
	if number, isPage := strings.CutPrefix(r.URL.Path, "/p/"); isPage {
		i, _ = strconv.Atoi(number)
	}
	if i >= len(s.pages) || i < 0 || i == 0 && r.URL.Path != "/" {
		http.NotFound(rw, r)
		return
	}
	p := s.pages[i]
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("ETag", fmt.Sprintf(`"%x"`, p.size))
	if p.coding != "" {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), p.coding) {
			http.Error(rw, p.coding+" is what this host speaks", http.StatusNotAcceptable)
			return
		}
		header.Set("Content-Encoding", p.coding)
	}
	header.Set("Content-Length", strconv.Itoa(len(p.body)))
	_, _ = rw.Write(p.body)
}

// render makes the pages of all variants of hosts.
func (t Web) render(w *testweb.Web) ([][]todayPage, error) {
	all := make([][]todayPage, min(todayVariants, t.Hosts))
	for v := range all {
		for i := range t.Pages {
			random := rand.New(rand.NewPCG(uint64(v), uint64(i)))
			text := newTodayText(t, w, i, random).render(t.Sizes.draw(random.NormFloat64()))
			p := todayPage{coding: t.encoding(v), body: text, size: len(text)}
			var b bytes.Buffer
			var z io.WriteCloser
			switch p.coding {
			case "gzip":
				z = gzip.NewWriter(&b)
			case "br":
				z = brotli.NewWriterLevel(&b, 4)
			}
			if z != nil {
				_, err := z.Write(text)
				if err := errors.Join(err, z.Close()); err != nil {
					return nil, fmt.Errorf("todayweb: compress: %w", err)
				}
				p.body = b.Bytes()
			}
			all[v] = append(all[v], p)
		}
	}
	return all, nil
}
