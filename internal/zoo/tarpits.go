package zoo

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// drip is how long a tarpit waits between two bytes.
const drip = time.Second

// AddTarpits lets out n tarpits, each at an address of its own, and returns their names: hosts that
// keep a client for as long as it stays, a byte a second, from one phase of a request or another.
// They are of all kinds in turn. It is to be called before the zoo is visited.
func (z *Zoo) AddTarpits(n int, address func(i int) netip.Addr) (names []string, err error) {
	for i := range n {
		a := tarpit(i)
		a.name = fmt.Sprintf("%s-%d", a.name, i)
		at := net.JoinHostPort(address(i).String(), "0")
		if err := z.letOut(a, at); err != nil {
			return nil, errors.Join(err, z.Close())
		}
		names = append(names, a.name)
	}
	return names, nil
}

// tarpit is the i-th of the kinds of tarpits, in turn.
func tarpit(i int) animal {
	const page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
	const file = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	drips := func(begin, text string) func(*guest) {
		return func(g *guest) {
			g.say(begin)
			g.forever(drip, text)
		}
	}
	asked := func(do func(*guest)) func(*guest) {
		return func(g *guest) {
			if g.asked() != "" {
				do(g)
			}
		}
	}
	kinds := []animal{
		{name: "tarpit-silent", rude: true, bite: asked((*guest).wait)},
		{name: "tarpit-tls", rude: true, secure: true, bite: drips("\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", "\x00")},
		{name: "tarpit-header", rude: true, bite: asked(drips("HTTP/1.1 200 OK\r\nX: ", "y"))},
		{name: "tarpit-interim", rude: true, bite: asked(drips("", "HTTP/1.1 103 Early Hints\r\n\r\n"))},
		{name: "tarpit-robots", rude: true, bite: asked(drips(file, "#"))},
		{name: "tarpit-body", bite: asked(drips(page, "x"))},
		{name: "tarpit-redirects", bite: redirectsSlowly},
		{name: "tarpit-turns", bite: turns(func(n int64) bool { return n == 1 })},
		{name: "tarpit-alternates", bite: turns(func(n int64) bool { return n%2 == 1 })},
	}
	a := kinds[i%len(kinds)]
	a.path = "/"
	return a
}

// redirectsSlowly leads from page to page, and has each wait.
func redirectsSlowly(g *guest) {
	for target := g.asked(); target != ""; target = g.asked() {
		n, _ := strconv.Atoi(strings.TrimPrefix(target, "/"))
		g.sleep(8 * drip)
		g.say(redirect("/" + strconv.Itoa(n+1)))
	}
}

// turns answers some requests, by their number, as a good server does, with links to more pages.
// The others get a byte a second.
func turns(good func(n int64) bool) func(*guest) {
	var n atomic.Int64
	return func(g *guest) {
		for g.asked() != "" {
			i := n.Add(1)
			if !good(i) {
				g.say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
				g.forever(drip, "x")
				return
			}
			links := strings.ReplaceAll(numbered(10, `<a href="/n%d">next</a>`), "/n", fmt.Sprintf("/%d-", i))
			g.say(sized("text/html", links))
		}
	}
}
