package memnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// Options are the properties of a network. The zero value has no latency and no limit.
type Options struct {
	Latency time.Duration // from one end of a connection to the other
	// Rate is the number of bytes a second that the line of the clients carries in the direction to
	// them, over all connections. 0: no limit.
	Rate int64
}

// Network connects clients with listeners. Any goroutine may call its methods.
type Network struct {
	o Options

	mu        sync.Mutex // guards what follows; nothing blocks under it
	listeners map[netip.AddrPort]*listener
	silent    map[netip.Addr]bool
	port      uint16    // the last port of a listener or a client
	free      time.Time // when the line of the clients has carried all bytes in flight
}

// New returns a network without listeners.
func New(o Options) *Network {
	return &Network{
		o: o, listeners: make(map[netip.AddrPort]*listener), silent: make(map[netip.Addr]bool), port: firstPort,
	}
}

// firstPort is the first port that the network itself assigns.
const firstPort = 32768

// Silence makes an address unresponsive: a dial to it waits until it is cancelled.
func (n *Network) Silence(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent[a] = true
}

// Listen listens on an address and port, as net.Listen does; port 0 means any free port.
func (n *Network) Listen(network, address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if at.Port() == 0 {
		at = netip.AddrPortFrom(at.Addr(), n.nextPortLocked())
	}
	if n.listeners[at] != nil {
		inUse := os.NewSyscallError("bind", syscall.EADDRINUSE)
		return nil, &net.OpError{Op: "listen", Net: network, Addr: net.TCPAddrFromAddrPort(at), Err: inUse}
	}
	l := &listener{network: n, at: at, arrived: make(chan net.Conn, backlog), closed: make(chan struct{})}
	n.listeners[at] = l
	return l, nil
}

// nextPortLocked returns a port without a listener.
func (n *Network) nextPortLocked() uint16 {
	for {
		if n.port++; n.port < firstPort {
			n.port = firstPort
		}
		taken := false
		for at := range n.listeners {
			taken = taken || at.Port() == n.port
		}
		if !taken {
			return n.port
		}
	}
}

// Dial connects to a listener, as net.Dialer.DialContext does. It takes two latencies. Without a
// listener, the connection is refused.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	fail := func(err error) error {
		return &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(at), Err: err}
	}
	n.mu.Lock()
	l, silent := n.listeners[at], n.silent[at.Addr()]
	n.port++
	from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 200}), max(n.port, firstPort))
	answer := n.arrivalLocked(0).Add(n.o.Latency)
	n.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, fail(ctx.Err())
	}
	if err := sleepUntil(ctx, answer); err != nil {
		return nil, fail(err)
	}
	refused := fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	if l == nil {
		return nil, refused
	}
	client, server := n.connect(from, at)
	select {
	case <-l.closed:
		return nil, refused
	case l.arrived <- server:
		return client, nil
	case <-ctx.Done():
		return nil, fail(ctx.Err())
	}
}

// sleepUntil waits for an instant, or for the end of ctx.
func sleepUntil(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect returns both ends of a new connection.
func (n *Network) connect(client, server netip.AddrPort) (near, far *Conn) {
	up := newStream(func(int) time.Time { return time.Now().Add(n.o.Latency) })
	down := newStream(func(bytes int) time.Time {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.arrivalLocked(bytes)
	})
	a, b := net.TCPAddrFromAddrPort(client), net.TCPAddrFromAddrPort(server)
	return &Conn{in: down, out: up, local: a, remote: b}, &Conn{in: up, out: down, local: b, remote: a}
}

// headerBytes is the size of a packet's headers on the line.
const headerBytes = 60

// arrivalLocked returns when bytes that leave a server now arrive at the client, after all bytes in
// flight.
func (n *Network) arrivalLocked(bytes int) time.Time {
	now := time.Now()
	if n.o.Rate > 0 {
		if n.free.Before(now) {
			n.free = now
		}
		n.free = n.free.Add(time.Duration(int64(bytes+headerBytes) * int64(time.Second) / n.o.Rate))
		now = n.free
	}
	return now.Add(n.o.Latency)
}

// backlog is the number of connections that may wait for Accept.
const backlog = 1024

// listener accepts connections at one address.
type listener struct {
	network *Network
	at      netip.AddrPort
	arrived chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	case c := <-l.arrived:
		return c, nil
	}
}

// Close ends the listener and resets connections that were not accepted.
func (l *listener) Close() error {
	err := fmt.Errorf("close %v: %w", l.at, net.ErrClosed)
	l.once.Do(func() {
		err = nil
		l.network.mu.Lock()
		delete(l.network.listeners, l.at)
		l.network.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.arrived:
				c.(*Conn).reset()
			default:
				return
			}
		}
	})
	return err
}

// Addr returns the address of the listener, a *net.TCPAddr.
func (l *listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.at) }
