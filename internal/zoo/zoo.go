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

// animal is one kind of bad server. It gets each connection but the first, and may
// do with it what it wants.
type animal struct {
	name   string
	secure bool // https
	rude   bool // it gets the first connection too
	path   string
	rules  string // its robots.txt
	bite   func(*guest)
}

// Zoo holds all animals until it is closed. Its methods may be called by any
// goroutine.
type Zoo struct {
	clock   Clock
	listen  func(network, address string) (net.Listener, error)
	cages   map[string]*cage
	names   []string
	roots   *x509.CertPool
	good    *tls.Config // for the first connection of each
	running sync.WaitGroup

	mu     sync.Mutex // guards what follows
	guests map[net.Conn]struct{}
	closed bool
}

// cage is an animal behind its listener.
type cage struct {
	animal
	net.Listener
	robots atomic.Bool // robots.txt was served
	met    atomic.Int64
	bitten atomic.Int64
}

// Clock is the time that a zoo goes by: to be late is the trade of some animals.
type Clock struct {
	Now   func() time.Time
	Sleep func(time.Duration)
}

// New lets all animals out, on the loopback.
func New(clock Clock) (*Zoo, error) { return NewOn(clock, net.Listen) }

// NewOn lets all animals out where listen opens their listeners.
func NewOn(clock Clock, listen func(network, address string) (net.Listener, error)) (*Zoo, error) {
	z := &Zoo{clock: clock, listen: listen, cages: make(map[string]*cage), guests: make(map[net.Conn]struct{})}
	certificates, err := newCertificates(clock.Now())
	if err != nil {
		return nil, err
	}
	z.roots, z.good = certificates.roots, certificates.config(certificates.good)
	for _, a := range animals(certificates) {
		if err := z.letOut(a, "127.0.0.1:0"); err != nil {
			return nil, errors.Join(err, z.Close())
		}
		z.names = append(z.names, a.name)
	}
	return z, nil
}

// letOut opens the cage of an animal.
func (z *Zoo) letOut(a animal, address string) error {
	l, err := z.listen("tcp", address)
	if err != nil {
		return err
	}
	c := &cage{animal: a, Listener: l}
	z.cages[a.name] = c
	z.running.Go(func() { z.guard(c) })
	return nil
}

func animals(c *certificates) (all []animal) {
	for _, house := range [][]animal{headers(), bodies(), codings(), hollow(), redirects(), pages(), parsers(), handshakes(c), kept(c), streams(c)} {
		all = append(all, house...)
	}
	return all
}

// Names are those of the animals, tarpits of AddTarpits apart. Each has the host NAME.zoo.test.
func (z *Zoo) Names() []string { return z.names }

// Host is the host name of an animal; it is for a name server of the test to say
// that it is at Address.
func (z *Zoo) Host(name string) string { return name + ".zoo.test" }

// URL is where an animal is to be visited.
func (z *Zoo) URL(name string) string {
	c := z.cages[name]
	scheme := "http"
	if c.secure {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s:%d%s", scheme, z.Host(name), c.Addr().(*net.TCPAddr).Port, c.path)
}

// Address is where an animal is.
func (z *Zoo) Address(name string) netip.Addr {
	return z.cages[name].Addr().(*net.TCPAddr).AddrPort().Addr()
}

// Roots are the authorities whose certificates the good servers have.
func (z *Zoo) Roots() *x509.CertPool { return z.roots }

// Bitten is how many connections an animal got.
func (z *Zoo) Bitten(name string) int64 { return z.cages[name].bitten.Load() }

// Met is how many connections there were to an animal, the first for its robots.txt included.
func (z *Zoo) Met(name string) int64 { return z.cages[name].met.Load() }

// Close ends the zoo: no goroutine, connection or listener is left.
func (z *Zoo) Close() error {
	var errs []error
	z.mu.Lock()
	z.closed = true
	for _, c := range z.cages {
		errs = append(errs, c.Close())
	}
	for g := range z.guests {
		_ = g.Close()
	}
	z.mu.Unlock()
	z.running.Wait()
	return errors.Join(errs...)
}

// guard lets guests to an animal.
func (z *Zoo) guard(c *cage) {
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
		z.guests[conn] = struct{}{}
		z.mu.Unlock()
		z.running.Go(func() {
			z.receive(c, conn)
			_ = conn.Close()
			z.mu.Lock()
			delete(z.guests, conn)
			z.mu.Unlock()
		})
	}
}

// longest is how long a guest is kept at most.
const longest = time.Minute

func (z *Zoo) receive(c *cage, conn net.Conn) {
	c.met.Add(1)
	_ = conn.SetDeadline(z.clock.Now().Add(longest))
	g := &guest{Conn: conn, raw: conn, cage: c, sleep: z.clock.Sleep}
	if c.rude || c.robots.Load() {
		c.bitten.Add(1)
		g.r = bufio.NewReader(g)
		c.bite(g)
		return
	}
	if c.secure {
		g.Conn = tls.Server(conn, z.good)
	}
	g.r = bufio.NewReader(g)
	if g.asked() == "/robots.txt" {
		c.robots.Store(true)
		g.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(c.rules), c.rules))
		g.close()
	}
}

// guest is a connection of a client.
type guest struct {
	net.Conn
	raw  net.Conn // below TLS
	cage *cage
	r    *bufio.Reader

	sleep func(time.Duration)
}

// asked reads a request and returns its target; "" where none comes.
func (g *guest) asked() (target string) {
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

// say sends text and reports whether the guest is still there.
func (g *guest) say(parts ...string) bool {
	for _, p := range parts {
		if _, err := io.WriteString(g.Conn, p); err != nil {
			return false
		}
	}
	return true
}

// forever sends text again and again until the guest has gone.
func (g *guest) forever(pause time.Duration, text string) {
	b := []byte(text)
	for {
		if _, err := g.Write(b); err != nil {
			return
		}
		g.sleep(pause)
	}
}

// wait does nothing until the guest has gone.
func (g *guest) wait() { _, _ = io.Copy(io.Discard, g.r) }

// reset ends the connection with RST, after what was sent has arrived.
func (g *guest) reset() {
	g.sleep(10 * time.Millisecond)
	if tcp, ok := g.raw.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = g.raw.Close()
}

// close ends the connection in order: TLS says so first.
func (g *guest) close() { _ = g.Conn.Close() }

// answers is an animal that reads a request, sends what is given, and goes.
func answers(name string, parts ...string) animal {
	return animal{name: name, path: "/", bite: func(g *guest) {
		if g.asked() != "" {
			g.say(parts...)
		}
	}}
}

// after is an animal that reads a request and then does as it wants.
func after(name string, do func(*guest)) animal {
	return animal{name: name, path: "/", bite: func(g *guest) {
		if g.asked() != "" {
			do(g)
		}
	}}
}

// sized is a good response with a body.
func sized(contentType, body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", contentType, len(body), body)
}
