package zoo

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// server is one kind of bad server. It handles each connection except the first, as it likes.
type server struct {
	name      string
	secure    bool // https
	fromStart bool // it handles the first connection too
	path      string
	rules     string // its robots.txt
	serve     func(*client)
}

// Zoo is the servers of a web. Any goroutine may call its methods.
type Zoo struct {
	web       *testweb.Web
	clock     Clock
	instances map[string]*instance
	names     []string
	roots     *x509.CertPool
	good      *tls.Config // for the first connection of each
}

// instance is a server that runs.
type instance struct {
	server
	robots   atomic.Bool // robots.txt was served
	accepted atomic.Int64
	served   atomic.Int64
}

// Clock is the time of a zoo: some servers misbehave by being late.
type Clock struct {
	Now   func() time.Time
	Sleep func(time.Duration)
}

// Config says how a zoo is built.
type Config struct {
	Clock  Clock
	Shrink int // divides the sizes of hostile pages; 0: full size
}

// New adds all servers to a web, which ends them.
func New(web *testweb.Web, c Config) (*Zoo, error) {
	z := &Zoo{web: web, clock: c.Clock, instances: make(map[string]*instance)}
	certificates, err := newCertificates(c.Clock.Now())
	if err != nil {
		return nil, err
	}
	z.roots, z.good = certificates.roots, certificates.config(certificates.good)
	for _, a := range servers(certificates, size(max(c.Shrink, 1))) {
		if err := z.start(a, loopback); err != nil {
			return nil, err
		}
		z.names = append(z.names, a.name)
	}
	return z, nil
}

// loopback is any free port of the loopback.
const loopback = "127.0.0.1:0"

// start starts a server.
func (z *Zoo) start(a server, address string) error {
	c, scheme := &instance{server: a}, "http"
	if a.secure {
		scheme = "https"
	}
	z.instances[a.name] = c
	return z.web.Serve(scheme, z.Host(a.name), address, func(conn net.Conn) { z.receive(c, conn) })
}

// size is the number that the counts of tags, lines and fields in hostile pages are divided by.
type size int

func (s size) of(count int) int { return count / int(s) }

func servers(c *certificates, s size) (all []server) {
	for _, house := range [][]server{headers(), bodies(), codings(s), hollow(), redirects(), pages(s), parsers(s),
		handshakes(c), kept(c), streams(c)} {
		all = append(all, house...)
	}
	return all
}

// Names returns the names of the servers, except tarpits of AddTarpits. Each has the host
// NAME.zoo.test.
func (z *Zoo) Names() []string { return z.names }

// Host returns the host name of a server.
func (z *Zoo) Host(name string) string { return name + ".zoo.test" }

// URL returns the URL of a server's first page.
func (z *Zoo) URL(name string) string { return z.web.URL(z.Host(name), z.instances[name].path) }

// Roots returns the authorities that signed the certificates of the good servers.
func (z *Zoo) Roots() *x509.CertPool { return z.roots }

// Bitten returns the number of connections that a server handled itself.
func (z *Zoo) Bitten(name string) int64 { return z.instances[name].served.Load() }

// Met returns the number of connections to a server, including the first one for its robots.txt.
func (z *Zoo) Met(name string) int64 { return z.instances[name].accepted.Load() }

// longest is the longest time that a connection is held.
const longest = time.Minute

func (z *Zoo) receive(c *instance, conn net.Conn) {
	c.accepted.Add(1)
	_ = conn.SetDeadline(z.clock.Now().Add(longest))
	g := &client{Conn: conn, raw: conn, instance: c, sleep: z.clock.Sleep}
	if c.fromStart || c.robots.Load() {
		c.served.Add(1)
		g.r = bufio.NewReader(g)
		c.serve(g)
		return
	}
	if c.secure {
		g.Conn = tls.Server(conn, z.good)
	}
	g.r = bufio.NewReader(g)
	if g.request() == "/robots.txt" {
		c.robots.Store(true)
		g.send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: "+
			"close\r\n\r\n%s", len(c.rules), c.rules))
		g.close()
	}
}

// client is a connection of a client.
type client struct {
	net.Conn
	raw      net.Conn   // below TLS
	below    *gathering // the same, if there is TLS
	instance *instance
	r        *bufio.Reader

	sleep func(time.Duration)
}

// request reads a request and returns its target, or "" if none arrives.
func (g *client) request() (target string) {
	for i := 0; ; i++ {
		line, err := g.r.ReadString('\n')
		if err != nil {
			return ""
		}
		if words := strings.Fields(line); i == 0 && len(words) == 3 {
			target = words[1]
		}
		if line == "\r\n" {
			return target
		}
	}
}

// send sends text and reports whether the client is still connected.
func (g *client) send(parts ...string) bool {
	for _, p := range parts {
		if _, err := io.WriteString(g.Conn, p); err != nil {
			return false
		}
	}
	return true
}

// forever sends text again and again until the client has gone.
func (g *client) forever(pause time.Duration, text string) {
	b := []byte(text)
	for {
		if _, err := g.Write(b); err != nil {
			return
		}
		g.sleep(pause)
	}
}

// wait does nothing until the client has gone.
func (g *client) wait() { _, _ = io.Copy(io.Discard, g.r) }

// reset ends the connection with RST, after what was sent has arrived.
func (g *client) reset() {
	g.sleep(10 * time.Millisecond)
	if tcp, ok := g.raw.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = g.raw.Close()
}

// close ends the connection in order, with TLS's own end first.
func (g *client) close() { _ = g.Conn.Close() }

// answers is a server that reads a request, sends parts, and closes the connection.
func answers(name string, parts ...string) server {
	return server{name: name, path: "/", serve: func(g *client) {
		if g.request() != "" {
			g.send(parts...)
		}
	}}
}

// after is a server that reads a request and then does as it likes.
func after(name string, do func(*client)) server {
	return server{name: name, path: "/", serve: func(g *client) {
		if g.request() != "" {
			do(g)
		}
	}}
}

// made is a server that is made for the first connection it handles: its responses take long to make.
func made(name string, make func(name string) server) server {
	serve := sync.OnceValue(func() func(*client) { return make(name).serve })
	return server{name: name, path: "/", serve: func(g *client) { serve()(g) }}
}

// sized is a good response with a body.
func sized(contentType, body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", contentType,
		len(body), body)
}
