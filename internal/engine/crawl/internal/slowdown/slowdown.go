// Package slowdown finds addresses whose hosts have become slower together.
package slowdown

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/politeness"
)

// Slowdown is an address whose hosts have become slower together: they probably share a server. Nothing
// is done about it.
type Slowdown struct {
	Address string    `json:"address"`
	Since   time.Time `json:"since"`
	Hosts   []string  `json:"hosts"` // that are slower, the first 10
	Slow    int       `json:"slow"`  // how many are slower
	Of      int       `json:"of"`    // the hosts of the address that responded lately
	Factor  float64   `json:"factor"`
}

// String returns the slowdown for people.
func (s *Slowdown) String() string {
	return fmt.Sprintf("%d of %d hosts of %s became slower together, %.1f times, since %s UTC", s.Slow, s.Of, s.Address,
		s.Factor, s.Since.UTC().Format(time.DateTime))
}

// The bounds of the slowdowns in a status.
const (
	Most      = 50
	mostHosts = 10
)

// slowdownsEvery is how often they are looked for.
const slowdownsEvery = 10 * time.Second

// Finder looks for slowdowns. It belongs to one goroutine. The zero value is ready for use.
type Finder struct {
	politeness.Slowdowns
	Found []Slowdown // as last found
	next  time.Time  // when they are looked for again
}

// Find looks for addresses whose hosts have become slower together, and logs those that are new.
func (f *Finder) Find(log *slog.Logger, now time.Time) {
	if now.Before(f.next) {
		return
	}
	f.next = now.Add(slowdownsEvery)
	found, ended := f.Slowdowns.Found(now)
	f.Found = nil
	for _, g := range found {
		s := Slowdown{
			Address: g.Address.String(), Since: g.Since.UTC(), Hosts: g.Hosts[:min(len(g.Hosts), mostHosts)],
			Slow: len(g.Hosts), Of: g.Of, Factor: math.Round(10*g.Factor) / 10,
		}
		if g.Since.Equal(now) {
			log.Warn("hosts of one address became slower together: they may share a server; politeness.groups can "+
				"limit them together", "address", s.Address, "hosts", s.Hosts, "slow", s.Slow, "of", s.Of,
				"factor", s.Factor)
		}
		if len(f.Found) < Most {
			f.Found = append(f.Found, s)
		}
	}
	for _, address := range ended {
		log.Info("the hosts of an address are not slower together any more", "address", address.String())
	}
}

// Of returns the slowdown of the address of a host, for people; empty: there is none.
func Of(all []Slowdown, address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return ""
	}
	network := politeness.AddressOf(a).String()
	for i := range all {
		if all[i].Address == network {
			return all[i].String()
		}
	}
	return ""
}
