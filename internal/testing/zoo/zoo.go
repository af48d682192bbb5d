package zoo

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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

// Zoo runs all servers until it is closed. Any goroutine may call its methods.
type Zoo struct {
	clock     Clock
	listen    func(network, address string) (net.Listener, error)
	instances map[string]*instance
	names     []string
	roots     *x509.CertPool
	good      *tls.Config // for the first connection of each
	running   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	clients map[net.Conn]struct{}
	closed  bool
}

// instance is a server with its listener.
type instance struct {
	server
	net.Listener
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
	Listen func(network, address string) (net.Listener, error) // opens the listeners; nil: net.Listen
	Shrink int                                                 // divides the sizes of hostile pages; 0: full size
}

// New starts all servers.
func New(c Config) (*Zoo, error) {
	if c.Listen == nil {
		c.Listen = net.Listen
	}
	z := &Zoo{
		clock: c.Clock, listen: c.Listen, instances: make(map[string]*instance), clients: make(map[net.Conn]struct{}),
	}
	certificates, err := newCertificates(c.Clock.Now())
	if err != nil {
		return nil, err
	}
	z.roots, z.good = certificates.roots, certificates.config(certificates.good)
	for _, a := range servers(certificates, size(max(c.Shrink, 1))) {
		if err := z.start(a, "127.0.0.1:0"); err != nil {
			return nil, errors.Join(err, z.Close())
		}
		z.names = append(z.names, a.name)
	}
	return z, nil
}

// start starts a server.
func (z *Zoo) start(a server, address string) error {
	l, err := z.listen("tcp", address)
	if err != nil {
		return err
	}
	c := &instance{server: a, Listener: l}
	z.instances[a.name] = c
	z.running.Go(func() { z.guard(c) })
	return nil
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

// Host returns the host name of a server. The test's name server resolves it to Address.
func (z *Zoo) Host(name string) string { return name + ".zoo.test" }

// URL returns the URL of a server's first page.
func (z *Zoo) URL(name string) string {
	c := z.instances[name]
	scheme := "http"
	if c.secure {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s:%d%s", scheme, z.Host(name), c.Addr().(*net.TCPAddr).Port, c.path)
}

// Address returns the address of a server.
func (z *Zoo) Address(name string) netip.Addr {
	return z.instances[name].Addr().(*net.TCPAddr).AddrPort().Addr()
}

// Roots returns the authorities that signed the certificates of the good servers.
func (z *Zoo) Roots() *x509.CertPool { return z.roots }

// Bitten returns the number of connections that a server handled itself.
func (z *Zoo) Bitten(name string) int64 { return z.instances[name].served.Load() }

// Met returns the number of connections to a server, including the first one for its robots.txt.
func (z *Zoo) Met(name string) int64 { return z.instances[name].accepted.Load() }

// Close stops the zoo: no goroutine, connection or listener is left.
func (z *Zoo) Close() error {
	var errs []error
	z.mu.Lock()
	z.closed = true
	for _, c := range z.instances {
		errs = append(errs, c.Close())
	}
	for g := range z.clients {
		_ = g.Close()
	}
	z.mu.Unlock()
	z.running.Wait()
	return errors.Join(errs...)
}

// guard accepts the connections to a server.
func (z *Zoo) guard(c *instance) {
	for {
		conn, err := c.Accept()
		if err != nil {
			return
		}
		z.mu.Lock()
		if z.closed {
			z.mu.Unlock()
			_ = conn.Close()
			return
		}
		z.clients[conn] = struct{}{}
		z.mu.Unlock()
		z.running.Go(func() {
			z.receive(c, conn)
			_ = conn.Close()
			z.mu.Lock()
			delete(z.clients, conn)
			z.mu.Unlock()
		})
	}
}

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
	raw      net.Conn // below TLS
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
