package fetch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// newResolver returns a resolver that queries Options.Resolver, or the system's name servers if
// that is empty. net.Resolver does the work (retries, TCP after a truncated response, hosts file)
// but hides the time to live, so the resolver's connections are read along with. If no descriptor
// is left for a connection, makeRoom is called; if it reports that there is room now, dialling is
// tried once more. UDP sockets come from sockets and return there.
func newResolver(o Options, sockets *querySockets, makeRoom func() bool) *net.Resolver {
	dial := o.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if o.Resolver != "" {
				address = o.Resolver
			}
			if strings.HasPrefix(network, "udp") {
				if socket := sockets.take(address); socket != nil {
					return readAlong(ctx, socket, sockets), nil
				}
			}
			c, err := dial(ctx, network, address)
			if OutOfDescriptors(err) && makeRoom() {
				c, err = dial(ctx, network, address)
			}
			if err != nil {
				recordOf(ctx).failed(err)
				return nil, err
			}
			if udp, ok := c.(*net.UDPConn); ok {
				return readAlong(ctx, &querySocket{UDPConn: udp, address: address, made: sockets.now()}, sockets), nil
			}
			return readAlong(ctx, c, sockets), nil
		},
	}
}

// newHostsFile returns a resolver that reads the machine's hosts file and queries no name server.
func newHostsFile() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server is queried")
	}}
}

// ttlKey is the context key of the ttlRecord of a lookup.
type ttlKey struct{}

// ttlRecord collects the least time to live of the responses of one lookup, and the aliases and
// addresses of its name in them. The two queries of a lookup (A and AAAA) add to it concurrently.
type ttlRecord struct {
	mu       sync.Mutex          // guards what follows
	seconds  uint32              // of responses
	positive bool                // seconds is set
	negative uint32              // of responses without a record (RFC 2308, section 5)
	none     bool                // negative is set
	nameless bool                // a response said that there is no such name
	aliases  []string            // that CNAME records lead to
	answered bool                // a response came
	addrs    map[netip.Addr]bool // of the name and its aliases
	local    error               // the local error that kept a query from a name server
}

// maxAliases bounds the aliases of one name. Longer chains are not resolved by many name servers.
const maxAliases = 8

// addAlias adds the target of a CNAME record. Both queries of a lookup find the same ones.
func (t *ttlRecord) addAlias(target string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.aliases) < maxAliases && !slices.Contains(t.aliases, target) {
		t.aliases = append(t.aliases, target)
	}
}

// addAddress adds an address of the name.
func (t *ttlRecord) addAddress(a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.addrs == nil {
		t.addrs = make(map[netip.Addr]bool)
	}
	t.addrs[a.Unmap()] = true
}

// ofName removes addresses that responses gave for other names. What comes from a hosts file stays.
func (t *ttlRecord) ofName(addrs []netip.Addr) []netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(addrs, func(a netip.Addr) bool { return t.answered && !t.addrs[a.Unmap()] })
}

// names returns the aliases.
func (t *ttlRecord) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.aliases)
}

// recordOf returns the record of the lookup that ctx belongs to.
func recordOf(ctx context.Context) *ttlRecord {
	if record, ok := ctx.Value(ttlKey{}).(*ttlRecord); ok {
		return record
	}
	return &ttlRecord{}
}

// failed records a connection that could not be made.
func (t *ttlRecord) failed(err error) {
	if !OutOfDescriptors(err) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.local = err
}

// fault returns the local error that kept a query from a name server; nil if there was none.
func (t *ttlRecord) fault() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.local
}

// least returns the least time to live of the records, or, if there were none, that of their
// absence.
func (t *ttlRecord) least() (time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.positive:
		return time.Duration(t.seconds) * time.Second, true
	case t.none:
		return time.Duration(t.negative) * time.Second, true
	}
	return 0, false
}

// absence returns how long the absence of the name may be cached; 0: no name server has said.
func (t *ttlRecord) absence() time.Duration {
	ttl, ok := t.least()
	if !ok {
		return 0
	}
	return min(max(ttl, minTTL), maxAbsence)
}

// noSuchName reports whether a name server said that the name does not exist.
func (t *ttlRecord) noSuchName() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nameless
}

func (t *ttlRecord) addCode(code dnsmessage.RCode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered = true
	t.nameless = t.nameless || code == dnsmessage.RCodeNameError
}

func (t *ttlRecord) addRecord(seconds uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.positive || seconds < t.seconds {
		t.seconds, t.positive = seconds, true
	}
}

func (t *ttlRecord) addAbsence(seconds uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.none || seconds < t.negative {
		t.negative, t.none = seconds, true
	}
}

// addMessage takes the times to live from one DNS response. A message that does not parse is
// ignored: the resolver itself judges it. addMessage runs in a goroutine of net.Resolver, where a
// panic would end the process.
func (t *ttlRecord) addMessage(msg []byte) {
	defer func() { _ = recover() }()
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil || !h.Response {
		return
	}
	name := ""
	if q, err := p.Question(); err == nil {
		name = nameText(q.Name)
	}
	if p.SkipAllQuestions() != nil {
		return
	}
	t.addCode(h.RCode)
	if answers := readAnswers(&p); !t.addAnswers(name, &answers) {
		t.addAuthority(&p)
	}
}

// addAnswers takes what the answers say of a name, and reports whether it has an address.
func (t *ttlRecord) addAnswers(name string, answers *dnsAnswers) (found bool) {
	chain, seconds := answers.chain(name)
	for _, alias := range chain[1:] {
		t.addRecord(seconds)
		t.addAlias(alias)
	}
	for _, a := range answers.addresses {
		if slices.Contains(chain, a.owner) {
			t.addRecord(a.seconds)
			t.addAddress(a.address)
			found = true
		}
	}
	return found
}

// addAuthority takes the time to live of an absence from the SOA record.
func (t *ttlRecord) addAuthority(p *dnsmessage.Parser) {
	for {
		r, err := p.AuthorityHeader()
		if err != nil {
			return
		}
		if r.Type != dnsmessage.TypeSOA {
			if p.SkipAuthority() != nil {
				return
			}
			continue
		}
		soa, err := p.SOAResource()
		if err != nil {
			return
		}
		t.addAbsence(min(r.TTL, soa.MinTTL))
	}
}

// readAlong returns c wrapped so that its responses are recorded in the ttlRecord of ctx, and so
// that it is closed when ctx ends: an abandoned lookup leaves nothing behind.
func readAlong(ctx context.Context, c net.Conn, sockets *querySockets) net.Conn {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	record := recordOf(ctx)
	if socket, ok := c.(*querySocket); ok {
		socket.queries++
		return &udpAlong{querySocket: socket, sockets: sockets, record: record, stop: stop}
	}
	return &tcpAlong{Conn: c, record: record, stop: stop}
}

// udpAlong carries one query. It remains a net.PacketConn, by which net.Resolver recognises UDP.
type udpAlong struct {
	*querySocket
	sockets  *querySockets
	record   *ttlRecord
	stop     func() bool
	id       [2]byte // of the query
	answered bool
}

func (c *udpAlong) Write(p []byte) (int, error) {
	copy(c.id[:], p)
	return c.querySocket.Write(p)
}

// Read records the answer to the query. A late answer to an earlier query is none; net.Resolver
// ignores it too.
func (c *udpAlong) Read(p []byte) (int, error) {
	n, err := c.querySocket.Read(p)
	if err == nil && bytes.HasPrefix(p[:n], c.id[:]) {
		c.answered = true
		c.record.addMessage(p[:n])
	}
	return n, err
}

// Close keeps the socket for another query if this one was answered.
func (c *udpAlong) Close() error {
	if c.stop() && c.answered {
		return c.sockets.put(c.querySocket)
	}
	return c.querySocket.Close()
}

// tcpAlong gathers a message with its two bytes of length (RFC 1035, section 4.2.2). One connection
// carries one response.
type tcpAlong struct {
	net.Conn
	record *ttlRecord
	stop   func() bool
	buf    []byte
}

func (c *tcpAlong) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.buf = append(c.buf, p[:n]...); len(c.buf) >= 2 {
		length := int(binary.BigEndian.Uint16(c.buf))
		if len(c.buf) == 2+length {
			c.record.addMessage(c.buf[2:])
		}
	}
	return n, err
}

func (c *tcpAlong) Close() error {
	c.stop()
	return c.Conn.Close()
}
