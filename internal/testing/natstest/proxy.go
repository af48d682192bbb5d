package natstest

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy passes connections on to an address, until it is cut. It stands for the network between a
// node and a server.
type Proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns map[net.Conn]struct{}
	delay time.Duration
	from  []byte // what clients say in place of to; nil: nothing changes
	to    []byte
	cut   bool // nothing passes, and nobody is told
	done  bool
	mend  *sync.Cond
}

// NewProxy starts a proxy, which ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target, conns: make(map[net.Conn]struct{})}
	p.mend = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// URL returns the address of the proxy as clients want it.
func (p *Proxy) URL() string { return "nats://" + p.listener.Addr().String() }

// Cut stops all that passes, without closing a connection: a cable that was pulled.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
}

// Mend lets everything pass again, what was under way included.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
	p.mend.Broadcast()
}

// Delay makes each piece that passes late.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Divert changes a text in what clients send, such as the subject of requests: they come to whoever serves the other
// subject. Both texts have the same length; empty ones end it.
func (p *Proxy) Divert(from, to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from, p.to = []byte(from), []byte(to)
}

// diverted returns what is passed on of a piece of a client.
func (p *Proxy) diverted(b []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.from) == 0 {
		return b
	}
	return bytes.ReplaceAll(b, p.from, p.to)
}

// Break closes all connections.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.done = true
	p.mend.Broadcast()
	p.mu.Unlock()
	p.Break()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.connect(in) })
	}
}

func (p *Proxy) connect(in net.Conn) {
	defer in.Close()
	if !p.wait() {
		return
	}
	out, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer out.Close()
	if !p.add(in, out) {
		return
	}
	defer p.remove(in, out)
	var both sync.WaitGroup
	both.Go(func() { p.pass(out, in, p.diverted) })
	both.Go(func() { p.pass(in, out, nil) })
	both.Wait()
}

func (p *Proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return !p.done
}

func (p *Proxy) remove(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// wait returns when the proxy is not cut, and reports whether it still runs.
func (p *Proxy) wait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.cut && !p.done {
		p.mend.Wait()
	}
	return !p.done
}

// pass passes bytes on until an end fails, and then closes both. change may be nil.
func (p *Proxy) pass(to, from net.Conn, change func([]byte) []byte) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		delay := p.delay
		p.mu.Unlock()
		if delay > 0 {
			time.Sleep(delay)
		}
		if !p.wait() {
			return
		}
		piece := b[:n]
		if change != nil {
			piece = change(piece)
		}
		if _, werr := to.Write(piece); werr != nil || err != nil {
			return
		}
	}
}
