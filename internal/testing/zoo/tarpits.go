package zoo

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// drip is the time between two bytes of a tarpit.
const drip = time.Second

// AddTarpits starts n tarpits, each at an address of its own, and returns their names: hosts that
// hold a client for as long as it stays, with a byte a second, in different phases of a request.
// The kinds of tarpits take turns. Call it before the first visit.
func (z *Zoo) AddTarpits(n int, address func(i int) netip.Addr) (names []string, err error) {
	for i := range n {
		a := tarpit(i)
		a.name = fmt.Sprintf("%s-%d", a.name, i)
		at := net.JoinHostPort(address(i).String(), "0")
		if err := z.start(a, at); err != nil {
			return nil, err
		}
		names = append(names, a.name)
	}
	return names, nil
}

// tarpit returns a tarpit of the i-th kind, modulo the number of kinds.
func tarpit(i int) server {
	const page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
	const file = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	drips := func(begin, text string) func(*client) {
		return func(g *client) {
			g.send(begin)
			g.forever(drip, text)
		}
	}
	afterRequest := func(do func(*client)) func(*client) {
		return func(g *client) {
			if g.request() != "" {
				do(g)
			}
		}
	}
	kinds := []server{
		{name: "tarpit-silent", fromStart: true, serve: afterRequest((*client).wait)},
		{name: "tarpit-tls", fromStart: true, secure: true,
			serve: drips("\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", "\x00")},
		{name: "tarpit-header", fromStart: true, serve: afterRequest(drips("HTTP/1.1 200 OK\r\nX: ", "y"))},
		{name: "tarpit-interim", fromStart: true, serve: afterRequest(drips("", "HTTP/1.1 103 Early Hints\r\n\r\n"))},
		{name: "tarpit-robots", fromStart: true, serve: afterRequest(drips(file, "#"))},
		{name: "tarpit-body", serve: afterRequest(drips(page, "x"))},
		{name: "tarpit-redirects", serve: redirectsSlowly},
		{name: "tarpit-turns", serve: turns(func(n int64) bool { return n == 1 })},
		{name: "tarpit-alternates", serve: turns(func(n int64) bool { return n%2 == 1 })},
	}
	a := kinds[i%len(kinds)]
	a.path = "/"
	return a
}

// redirectsSlowly redirects from page to page, and delays each redirect.
func redirectsSlowly(g *client) {
	for target := g.request(); target != ""; target = g.request() {
		n, _ := strconv.Atoi(strings.TrimPrefix(target, "/"))
		g.sleep(8 * drip)
		g.send(redirect("/" + strconv.Itoa(n+1)))
	}
}

// turns responds to some requests, by their number, as a good server does, with links to more
// pages. The others get a byte a second.
func turns(good func(n int64) bool) func(*client) {
	var n atomic.Int64
	return func(g *client) {
		for g.request() != "" {
			i := n.Add(1)
			if !good(i) {
				g.send("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
				g.forever(drip, "x")
				return
			}
			links := strings.ReplaceAll(numbered(10, `<a href="/n%d">next</a>`), "/n", fmt.Sprintf("/%d-", i))
			g.send(sized("text/html", links))
		}
	}
}
