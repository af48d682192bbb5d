package politeness

import (
	"math"
	"net/netip"
	"slices"
	"time"
)

// Hosts of one address are often one machine, which no name shows. If their responses get slower at the
// same time and those of other addresses do not, then what slows them down is probably shared. That is
// reported, and changes no delay: it is for an operator to say that they share a limit.

const (
	slowdownRecent = 9                      // responses of a host that say how fast it is now
	slowdownLearn  = 16                     // responses before those, from which on is known how fast it usually is
	slowdownMemory = 256                    // responses in which another speed becomes the usual one
	slowdownFactor = 2                      // from which on a host is slow
	slowdownLeast  = 100 * time.Millisecond // by which it is slower, too
	slowdownHosts  = 3                      // slow at one address at the same time, and half of those there
	slowdownKept   = 10 * time.Minute       // without a response a host counts no more
	slowdownMost   = 20_000                 // hosts that are looked at
)

// Slowdowns finds addresses whose hosts get slower together. The zero value knows of none. It takes
// about 150 bytes a host, of at most 20,000 that had a response lately. It must not be used
// concurrently.
type Slowdowns struct {
	addresses map[netip.Addr]*slowAddress
	hosts     int
}

type slowAddress struct {
	hosts map[string]*slowHost
	since time.Time // it is reported since; zero: it is not
}

// slowHost is how fast a host responds. Times are logarithms of seconds, to the base 2.
type slowHost struct {
	last   time.Time
	usual  float64                 // mean of the responses before the recent ones
	recent [slowdownRecent]float64 // a ring
	seen   int
	by     float64 // by how much it is slower than usual; 0 until that is known
	slow   bool
}

// Slowdown is an address whose hosts have become slower together.
type Slowdown struct {
	Address netip.Addr // that of an IPv6 /64 network is its first
	Since   time.Time  // when that was seen
	Hosts   []string   // that are slower, sorted by name
	Of      int        // hosts of the address with responses lately
	Factor  float64    // by which a response takes longer, the median of the hosts
}

// AddressOf returns the address that stands for one IPv4 address or one IPv6 /64 network.
func AddressOf(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is6() {
		network, _ := a.WithZone("").Prefix(64)
		return network.Addr()
	}
	return a
}

// Observe takes how long a response of a host took to begin.
func (s *Slowdowns) Observe(address netip.Addr, host string, took time.Duration, now time.Time) {
	if !address.IsValid() || took <= 0 {
		return
	}
	address = AddressOf(address)
	a := s.addresses[address]
	if a == nil {
		a = &slowAddress{hosts: make(map[string]*slowHost)}
	}
	h := a.hosts[host]
	if h == nil {
		if s.hosts >= slowdownMost {
			return
		}
		if s.addresses == nil {
			s.addresses = make(map[netip.Addr]*slowAddress)
		}
		h = new(slowHost)
		s.addresses[address], a.hosts[host] = a, h
		s.hosts++
	}
	h.observe(took, now)
}

func (h *slowHost) observe(took time.Duration, now time.Time) {
	at := &h.recent[h.seen%slowdownRecent]
	leaving := *at
	*at = math.Log2(took.Seconds())
	h.seen++
	h.last = now
	learned := h.seen - slowdownRecent
	if learned <= 0 {
		return
	}
	if learned > slowdownLearn {
		learned = slowdownMemory // another speed becomes the usual one, but late
	}
	h.usual += (leaving - h.usual) / float64(learned)
	if !h.known() {
		return
	}
	current := h.now()
	h.by = current - h.usual
	h.slow = h.by >= math.Log2(slowdownFactor) && math.Exp2(current)-math.Exp2(h.usual) >= slowdownLeast.Seconds()
}

// now is the median of the recent responses.
func (h *slowHost) now() float64 {
	recent := h.recent
	slices.Sort(recent[:])
	return recent[slowdownRecent/2]
}

// known reports whether it is known how fast the host usually is.
func (h *slowHost) known() bool { return h.seen >= slowdownRecent+slowdownLearn }

// Found returns the addresses whose hosts are slower together, and those that were and are so no
// more. It forgets hosts without a response lately. The caller calls it now and then: it walks over
// all hosts.
func (s *Slowdowns) Found(now time.Time) (found []Slowdown, ended []netip.Addr) {
	counts := make(map[netip.Addr]slowCount, len(s.addresses))
	var medians []float64 // of the addresses
	for address, a := range s.addresses {
		c := a.count(now)
		s.hosts -= c.forgotten
		if len(a.hosts) == 0 {
			delete(s.addresses, address)
		}
		if !a.since.IsZero() && c.known == 0 {
			a.since = time.Time{}
			ended = append(ended, address)
		}
		if c.known > 0 {
			counts[address] = c
			medians = append(medians, c.median)
		}
	}
	// By this everything is slower, which is because of the crawler or its connection.
	own := 0.0
	if slices.Sort(medians); len(medians) > 1 {
		own = max(0, medians[(len(medians)-1)/2])
	}
	for address, c := range counts {
		a := s.addresses[address]
		switch isSlow := c.isSlow(own, !a.since.IsZero()); {
		case isSlow:
			if a.since.IsZero() {
				a.since = now
			}
			found = append(found, Slowdown{
				Address: address, Since: a.since, Hosts: slices.Sorted(slices.Values(c.slow)), Of: c.known,
				Factor: math.Exp2(c.median),
			})
		case !a.since.IsZero():
			a.since = time.Time{}
			ended = append(ended, address)
		}
	}
	slices.SortFunc(found, func(a, b Slowdown) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(ended, netip.Addr.Compare)
	return found, ended
}

// slowCount counts the hosts of an address.
type slowCount struct {
	known, forgotten int
	slow             []string // names
	median           float64  // by how much the known hosts are slower than usual, as a logarithm
}

// count counts the hosts of an address, and forgets those without a response lately.
func (a *slowAddress) count(now time.Time) (c slowCount) {
	var slower []float64
	for name, h := range a.hosts {
		if now.Sub(h.last) > slowdownKept {
			delete(a.hosts, name)
			c.forgotten++
			continue
		}
		if !h.known() {
			continue
		}
		c.known++
		slower = append(slower, h.by)
		if h.slow {
			c.slow = append(c.slow, name)
		}
	}
	if slices.Sort(slower); c.known > 0 {
		c.median = slower[c.known/2]
	}
	return c
}

// isSlow reports whether enough hosts are slow, and by more than everything else is. It takes less
// if the address is reported already, so that it does not come and go.
func (c *slowCount) isSlow(own float64, reported bool) bool {
	least, of, by := slowdownHosts, 2, 0.75*math.Log2(slowdownFactor)
	if reported {
		least, of, by = slowdownHosts-1, 4, by/2
	}
	return len(c.slow) >= least && of*len(c.slow) >= c.known && c.median-own >= by
}
