package testweb

import (
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// dnsServer answers A and AAAA questions about the hosts of a web, over UDP and TCP on one port of
// 127.0.0.1.
type dnsServer struct {
	packets net.PacketConn // nil: in virtual time, when all questions come over streams
	streams net.Listener
	ttl     uint32        // seconds
	absence time.Duration // before the answer that a name does not exist
	lasts   uint32        // lifetime of that answer in seconds; 0: the answer has none
	aliases map[string]string
	running sync.WaitGroup

	mu        sync.Mutex // guards what follows
	answers   map[string][]netip.Addr
	questions map[string]int
	open      map[net.Conn]struct{}
	closed    bool
}

const (
	dnsStreamTimeout = 5 * time.Second // for a TCP connection without a question
	maxCountedNames  = 100_000         // further names are answered and not counted
)

func newDNS(answers map[string][]netip.Addr, aliases map[string]string, c *Config) (*dnsServer, error) {
	packets, streams, err := listenDNS(c)
	if err != nil {
		return nil, err
	}
	d := &dnsServer{
		packets:   packets,
		streams:   streams,
		ttl:       uint32(c.TTL / time.Second),
		absence:   c.AbsenceTakes,
		lasts:     uint32(c.AbsenceLasts / time.Second),
		answers:   maps.Clone(answers),
		aliases:   aliases,
		questions: make(map[string]int),
		open:      make(map[net.Conn]struct{}),
	}
	if packets != nil {
		d.running.Go(d.servePackets)
	}
	d.running.Go(d.serveStreams)
	return d, nil
}

// listenDNS finds a port that is free for both protocols.
func listenDNS(c *Config) (net.PacketConn, net.Listener, error) {
	if c.Network != nil {
		streams, err := c.Network.Listen("tcp4", "127.0.0.1:0")
		return nil, streams, err
	}
	var last error
	for range portAttempts {
		streams, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		packets, err := net.ListenPacket("udp4", streams.Addr().String())
		if err == nil {
			return packets, streams, nil
		}
		_ = streams.Close()
		last = err
	}
	return nil, nil, last
}

func (d *dnsServer) addr() string { return d.streams.Addr().String() }

func (d *dnsServer) close() error {
	d.mu.Lock()
	d.closed = true
	err := d.streams.Close()
	if d.packets != nil {
		err = errors.Join(err, d.packets.Close())
	}
	for c := range d.open {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.running.Wait()
	return err
}

func (d *dnsServer) servePackets() {
	buffer := make([]byte, 4096)
	for {
		n, from, err := d.packets.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		reply, wait := d.reply(buffer[:n])
		switch {
		case reply == nil:
		case wait > 0:
			time.AfterFunc(wait, func() { _, _ = d.packets.WriteTo(reply, from) })
		default:
			_, _ = d.packets.WriteTo(reply, from)
		}
	}
}

func (d *dnsServer) serveStreams() {
	for {
		c, err := d.streams.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		if d.closed {
			_ = c.Close()
		} else {
			d.open[c] = struct{}{}
			d.running.Go(func() { d.serveStream(c) })
		}
		d.mu.Unlock()
	}
}

func (d *dnsServer) serveStream(c net.Conn) {
	defer func() {
		d.mu.Lock()
		delete(d.open, c)
		d.mu.Unlock()
		_ = c.Close()
	}()
	for {
		_ = c.SetDeadline(time.Now().Add(dnsStreamTimeout))
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		reply, wait := d.reply(query)
		if reply == nil {
			return
		}
		time.Sleep(wait)
		framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)
		if _, err := c.Write(framed); err != nil {
			return
		}
	}
}

// reply answers one message after a while. Packed is nil if the message is no question.
func (d *dnsServer) reply(query []byte) (packed []byte, wait time.Duration) {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil || header.Response {
		return nil, 0
	}
	question, err := parser.Question()
	if err != nil {
		return nil, 0
	}
	addrs, known := d.lookup(question.Name.String())
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, Authoritative: true,
			RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{question},
	}
	if !known {
		reply.RCode = dnsmessage.RCodeNameError
		reply.Authorities = d.authority()
		wait = d.absence
	}
	owner := question.Name
	answer := func(body dnsmessage.ResourceBody) {
		reply.Answers = append(reply.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: owner, Class: dnsmessage.ClassINET, TTL: d.ttl}, Body: body,
		})
	}
	if alias := d.aliases[hostName(owner.String())]; alias != "" {
		name := dnsmessage.MustNewName(alias + ".")
		answer(&dnsmessage.CNAMEResource{CNAME: name})
		owner = name
	}
	for _, a := range addrs {
		if body := resourceBody(a, question.Type); body != nil {
			answer(body)
		}
	}
	if packed, err = reply.Pack(); err != nil {
		return nil, 0
	}
	return packed, wait
}

// authority returns the record that says for how long a name does not exist (RFC 2308, section 3).
func (d *dnsServer) authority() []dnsmessage.Resource {
	if d.lasts == 0 {
		return nil
	}
	root := dnsmessage.MustNewName(".")
	return []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: root, Class: dnsmessage.ClassINET, TTL: d.lasts},
		Body:   &dnsmessage.SOAResource{NS: root, MBox: root, MinTTL: d.lasts},
	}}
}

// resourceBody returns the record of an address for a question of a type, or nil.
func resourceBody(a netip.Addr, kind dnsmessage.Type) dnsmessage.ResourceBody {
	switch {
	case kind == dnsmessage.TypeA && a.Is4():
		return &dnsmessage.AResource{A: a.As4()}
	case kind == dnsmessage.TypeAAAA && a.Is6():
		return &dnsmessage.AAAAResource{AAAA: a.As16()}
	}
	return nil
}

func hostName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func (d *dnsServer) lookup(name string) (addrs []netip.Addr, known bool) {
	name = hostName(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, counted := d.questions[name]; counted || len(d.questions) < maxCountedNames {
		d.questions[name]++
	}
	addrs, known = d.answers[name]
	return addrs, known
}

func (d *dnsServer) set(host string, addrs []netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(addrs) == 0 {
		delete(d.answers, hostName(host))
		return
	}
	d.answers[hostName(host)] = append([]netip.Addr(nil), addrs...)
}

func (d *dnsServer) lookups(host string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.questions[hostName(host)]
}
