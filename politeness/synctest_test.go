package politeness

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestHostsOnOneAddress runs a small crawler by a fake clock: forty hosts on four addresses, a
// goroutine for each request, one owner of all politeness. It measures the gaps as a server would
// see them.
func TestHostsOnOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.Delay, o.IPDelay, o.PerIP = 5*time.Second, time.Second/3, 4
		c := &miniCrawler{t: t, addresses: map[netip.Prefix]*miniAddress{}, done: make(chan *miniHost)}
		for i := range 40 {
			key := AddressKey(netip.AddrFrom4([4]byte{192, 0, 2, byte(i % 4)}))
			if c.addresses[key] == nil {
				c.addresses[key] = &miniAddress{Limit: NewLimit(o.Address())}
			}
			c.hosts = append(c.hosts, &miniHost{Host: NewHost(&o, State{}, time.Now()), at: c.addresses[key], left: 25})
		}
		began := time.Now()
		c.run()
		for i, h := range c.hosts {
			assert.Equal(t, h.left, 0, "host", i, "requests left")
		}
		// A host takes 24 delays and 25 responses. Waits for the address add to some of them.
		assert.AtMost(t, time.Since(began), 25*(5*time.Second+200*time.Millisecond), "took a host needs at most")
	})
}

type miniAddress struct {
	Limit
	last time.Time
}

type miniHost struct {
	*Host
	at       *miniAddress
	left     int
	inFlight bool
	last     time.Time
}

type miniCrawler struct {
	t         *testing.T
	hosts     []*miniHost
	addresses map[netip.Prefix]*miniAddress
	done      chan *miniHost
	inFlight  int
}

func (c *miniCrawler) run() {
	for {
		next, ready := c.next()
		if next != nil && !ready.After(time.Now()) {
			c.start(next)
			continue
		}
		var timer <-chan time.Time
		if next != nil {
			timer = time.After(time.Until(ready))
		} else if c.inFlight == 0 {
			return
		}
		select {
		case <-timer:
		case h := <-c.done:
			c.end(h)
		}
	}
}

// next returns the host that may be fetched from first, and when.
func (c *miniCrawler) next() (next *miniHost, at time.Time) {
	for _, h := range c.hosts {
		if h.left == 0 || h.inFlight || !h.at.Free() {
			continue
		}
		ready := h.Ready(epoch)
		if a := h.at.Ready(); a.After(ready) {
			ready = a
		}
		if next == nil || ready.Before(at) {
			next, at = h, ready
		}
	}
	return next, at
}

func (c *miniCrawler) start(h *miniHost) {
	now := time.Now()
	assert.AtLeast(c.t, now.Sub(h.last), 5*time.Second, "request to the host after the end of its last one")
	assert.AtLeast(c.t, now.Sub(h.at.last), time.Second/3, "request to the address after the end of its last one")
	h.inFlight = true
	h.at.Begin()
	c.inFlight++
	go func() {
		time.Sleep(rand.N(100 * time.Millisecond))
		c.done <- h
	}()
}

func (c *miniCrawler) end(h *miniHost) {
	now := time.Now()
	h.inFlight = false
	h.left--
	h.last, h.at.last = now, now
	h.Ended(now, Result{})
	h.at.Ended(now, SignalOK, 0)
	c.inFlight--
}
