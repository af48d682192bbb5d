package routes

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// ErrUnreachable means that a node did not answer: it has ended, or the network is cut.
var ErrUnreachable = errors.New("the node cannot be reached")

// Bounds of what other nodes may cost.
const (
	maxConns    = 256      // connections that other nodes have opened
	maxIncoming = 4 << 10  // messages that wait; what is beyond is lost, and breaks its connections
	idLength    = 32       // hexadecimal digits
	maxHead     = 64 << 10 // bytes of the header of a request or response
)

// flushTimeout bounds the wait for the server at the start.
const flushTimeout = 5 * time.Second

// The times of a connection, in ticks of a second.
const (
	tick       = time.Second
	sayEvery   = 5  // ticks between two messages that say what was taken
	maxSilence = 15 // ticks without a message, after which the connection is broken
)

// Routes are the connections of a node to the others. Its methods may be called concurrently.
type Routes struct {
	nc        *nats.Conn
	names     natsconn.Names
	node      string
	in        chan *nats.Msg
	sub       *nats.Subscription
	backlog   chan net.Conn // that others have opened, and nobody has accepted yet
	closed    chan struct{}
	close     func() // closes closed, once
	working   sync.WaitGroup
	transport *http.Transport

	mu       sync.Mutex
	conns    map[string]*conn // by id
	incoming int              // of conns, those that others have opened
}

// Start subscribes to the messages for a node. The connection belongs to the caller, who closes it after
// Close.
func Start(nc *nats.Conn, names natsconn.Names, node string) (*Routes, error) {
	r := &Routes{
		nc: nc, names: names, node: node, in: make(chan *nats.Msg, maxIncoming),
		backlog: make(chan net.Conn, maxConns), closed: make(chan struct{}), conns: make(map[string]*conn),
	}
	r.close = sync.OnceFunc(func() { close(r.closed) })
	r.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			node, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return r.Dial(ctx, node)
		},
		MaxConnsPerHost: 32, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
		DisableCompression: true, MaxResponseHeaderBytes: maxHead,
	}
	var err error
	if r.sub, err = nc.ChanSubscribe(r.subject(node, "*"), r.in); err != nil {
		return nil, fmt.Errorf("subscribe to the requests of other nodes: %w", err)
	}
	if err := nc.FlushTimeout(flushTimeout); err != nil {
		_ = r.sub.Unsubscribe()
		return nil, fmt.Errorf("subscribe to the requests of other nodes: %w: %w", natsconn.ErrDown, err)
	}
	r.working.Go(r.receive)
	r.working.Go(r.watch)
	return r, nil
}

// Close breaks all connections. No goroutine is left.
func (r *Routes) Close() {
	r.transport.CloseIdleConnections()
	_ = r.sub.Unsubscribe() // the connection may be gone
	r.close()
	for _, c := range r.all() {
		c.finish(net.ErrClosed)
	}
	r.working.Wait()
}

// subject returns the subject of an end of a connection.
func (r *Routes) subject(node, id string) string { return r.names.Subject("route", node, id) }

func (r *Routes) publish(subject, id string, f frame) error {
	return r.nc.PublishRequest(subject, r.subject(r.node, id), f.encode())
}

// Dial connects to a node, which may be this one. The error is ErrUnreachable, or that of the context.
func (r *Routes) Dial(ctx context.Context, node string) (net.Conn, error) {
	if node == r.node {
		return r.dialSelf()
	}
	if err := natsconn.ValidateName(node); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	random := make([]byte, idLength/2)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	id := hex.EncodeToString(random)
	c := newConn(r, id, node, r.subject(node, id))
	if !r.add(c, false) {
		return nil, fmt.Errorf("node %s: %w", node, net.ErrClosed)
	}
	again := time.NewTicker(tick)
	defer again.Stop()
	for {
		if err := c.publish(frame{kind: kindOpen}); err != nil {
			c.finish(err)
		}
		select {
		case <-c.accepted:
			return c, nil
		case <-c.done:
			return nil, fmt.Errorf("node %s: %w: %w", node, ErrUnreachable, c.err)
		case <-ctx.Done():
			c.finish(ctx.Err())
			return nil, fmt.Errorf("node %s: %w: %w", node, ErrUnreachable, ctx.Err())
		case <-again.C: // a node that leaves may not have read it: then nobody has the name any more
		}
	}
}

// dialSelf connects to this node.
func (r *Routes) dialSelf() (net.Conn, error) {
	one, other := net.Pipe()
	select {
	case <-r.closed:
		return nil, net.ErrClosed
	case r.backlog <- other:
		return one, nil
	default:
		return nil, fmt.Errorf("node %s: %w: it is too busy", r.node, ErrUnreachable)
	}
}

// add begins a connection. It reports whether there is room.
func (r *Routes) add(c *conn, incoming bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.closed:
		return false
	default:
	}
	if incoming && r.incoming >= maxConns || r.conns[c.id] != nil {
		return false
	}
	if incoming {
		r.incoming++
	}
	c.incoming = incoming
	r.conns[c.id] = c
	r.working.Go(c.send)
	r.working.Go(c.deliver)
	return true
}

func (r *Routes) forget(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conns[c.id] == c {
		delete(r.conns, c.id)
		if c.incoming {
			r.incoming--
		}
	}
}

func (r *Routes) all() []*conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*conn, 0, len(r.conns))
	for _, c := range r.conns {
		list = append(list, c)
	}
	return list
}

// receive takes messages until Close.
func (r *Routes) receive() {
	for {
		select {
		case <-r.closed:
			return
		case m := <-r.in:
			r.take(m)
		}
	}
}

// noResponders is the status with which the servers answer a message that nobody subscribes to.
const noResponders = "503"

// take takes a message. It does not trust it.
func (r *Routes) take(m *nats.Msg) {
	id, found := strings.CutPrefix(m.Subject, r.subject(r.node, ""))
	if !found || len(id) != idLength {
		return
	}
	r.mu.Lock()
	c := r.conns[id]
	r.mu.Unlock()
	if len(m.Data) == 0 && m.Header.Get("Status") == noResponders {
		if c != nil {
			c.finish(errors.New("nobody has its name"))
		}
		return
	}
	f, err := decodeFrame(m.Data)
	switch {
	case c != nil && err != nil:
		c.finish(err)
	case c != nil && m.Reply == c.peer:
		c.take(f)
	case c == nil && f.kind == kindOpen && err == nil:
		r.open(id, m.Reply)
	case c == nil && err == nil && f.kind != kindRefuse && f.kind != kindEnd:
		r.refuse(id, m.Reply)
	}
}

// open takes a connection that another node opens.
func (r *Routes) open(id, peer string) {
	node, valid := r.nodeOf(id, peer)
	if !valid {
		return
	}
	c := newConn(r, id, node, peer)
	if !r.add(c, true) {
		r.refuse(id, peer)
		return
	}
	if err := c.publish(frame{kind: kindAccept}); err != nil {
		c.finish(err)
		return
	}
	select {
	case r.backlog <- c:
	default:
		r.refuse(id, peer)
		c.finish(net.ErrClosed)
	}
}

// nodeOf returns the node that has the subject of the other end of a connection.
func (r *Routes) nodeOf(id, subject string) (node string, valid bool) {
	rest, found := strings.CutPrefix(subject, r.names.Subject("route", ""))
	node, cut := strings.CutSuffix(rest, "."+id)
	return node, found && cut && natsconn.ValidateName(node) == nil
}

// refuse tells another node that there is no such connection.
func (r *Routes) refuse(id, peer string) {
	if _, valid := r.nodeOf(id, peer); valid {
		_ = r.publish(peer, id, frame{kind: kindRefuse}) // it notices the silence otherwise
	}
}

// watch breaks connections to nodes that are silent, and lets others know that this one is there.
func (r *Routes) watch() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-r.closed:
			return
		case <-ticker.C:
		}
		for _, c := range r.all() {
			if c.silent.Add(1) > maxSilence {
				c.finish(errSilent)
			} else if n%sayEvery == 0 {
				_ = c.sayTaken() // it is said again
			}
		}
	}
}

// listener is the net.Listener of what other nodes open.
type listener struct {
	r      *Routes
	closed chan struct{}
	close  func() // closes closed, once
}

func (r *Routes) listener() *listener {
	l := &listener{r: r, closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.r.backlog:
		return c, nil
	case <-l.closed:
	case <-l.r.closed:
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.close()
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return address(l.r.node) }

// address is the name of a node.
type address string

// Network implements net.Addr.
func (address) Network() string { return "nats" }

// String implements net.Addr.
func (a address) String() string { return string(a) }
