package config

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
)

// Politeness bounds how fast hosts, addresses and domains are fetched from.
type Politeness struct {
	Delay time.Duration `mapstructure:"delay"` // least time between two requests to a host
	// delay at least this many times the last response time; 0: off. The default is 0 where Delay is 0
	AdaptiveFactor float64       `mapstructure:"adaptive_factor"`
	AdaptiveMax    time.Duration `mapstructure:"adaptive_max"` // longest adaptive delay
	// requests in flight; more than 1 only where no delay is in force
	PerHost       int           `mapstructure:"per_host"`
	Hours         []string      `mapstructure:"hours"`          // at which hosts are fetched from; none: all
	TimeZone      string        `mapstructure:"time_zone"`      // of hours
	HostBandwidth ByteSize      `mapstructure:"host_bandwidth"` // bytes a second received from a host; 0: no limit
	PerIP         int           `mapstructure:"per_ip"`         // requests in flight to one IP address
	IPDelay       time.Duration `mapstructure:"ip_delay"`       // least time between two requests to one IP address
	// requests a second that an IP address gets at first, more while it serves them well; 0: no budget
	IPRate float64 `mapstructure:"ip_rate"`
	// requests in flight to all hosts of a registrable domain; 0: no limit
	PerDomain   int            `mapstructure:"per_domain"`
	DomainDelay time.Duration  `mapstructure:"domain_delay"` // least time between two requests to a registrable domain
	Walls       bool           `mapstructure:"walls"`        // hosts that put up a wall are left alone
	Addresses   []AddressRange `mapstructure:"addresses"`    // ranges with limits of their own
	Groups      []Group        `mapstructure:"groups"`       // hosts that share a server
	Overrides   []Override     `mapstructure:"overrides"`    // hosts with settings of their own
}

// AddressRange gives a range of IP addresses limits of its own. A nil field is as for all
// addresses.
type AddressRange struct {
	Range   string         `mapstructure:"range"`    // 192.0.2.0/24, or one address
	PerIP   *int           `mapstructure:"per_ip"`   // requests in flight
	IPDelay *time.Duration `mapstructure:"ip_delay"` // least time between two requests
	IPRate  *float64       `mapstructure:"ip_rate"`  // requests a second at first; 0: no budget
	Shared  bool           `mapstructure:"shared"`   // the whole range counts as one address
}

// Override gives hosts settings of their own. A nil field is as for all hosts.
type Override struct {
	Hosts          []string       `mapstructure:"hosts"` // names, and patterns such as *.example.com
	Delay          *time.Duration `mapstructure:"delay"`
	AdaptiveFactor *float64       `mapstructure:"adaptive_factor"`
	PerHost        *int           `mapstructure:"per_host"`
	HostBandwidth  *ByteSize      `mapstructure:"host_bandwidth"`
	HostPages      *int           `mapstructure:"host_pages"` // limits.host_pages of each of them
	Hours          []string       `mapstructure:"hours"`      // nil: as for all hosts; empty: at all hours
	Pause          bool           `mapstructure:"pause"`      // nothing is fetched from them
}

// ipRate is what an address gets at first by default, in requests a second. Libraries have no budget
// by default, so that their callers decide.
const ipRate = 5

func defaultPoliteness(f *frontier.Options) Politeness {
	p := &f.Politeness
	return Politeness{
		Delay: p.Delay, AdaptiveFactor: adaptiveFactor, AdaptiveMax: p.AdaptiveMax, PerHost: p.PerHost,
		HostBandwidth: ByteSize(p.Bandwidth), PerIP: p.PerIP, IPDelay: p.IPDelay, IPRate: ipRate,
		PerDomain: f.Domain.InFlight, DomainDelay: f.Domain.Delay, Walls: f.Walls, Addresses: []AddressRange{},
		Groups: []Group{}, Overrides: []Override{}, Hours: []string{}, TimeZone: "UTC",
	}
}

// PolitenessOptions returns the options of politeness for hosts without an override.
func (c *Config) PolitenessOptions() politeness.Options {
	p := c.Politeness
	return politeness.Options{
		Delay:          p.Delay,
		AdaptiveFactor: p.AdaptiveFactor,
		AdaptiveMax:    p.AdaptiveMax,
		PerHost:        p.PerHost,
		Bandwidth:      int64(p.HostBandwidth),
		PerIP:          p.PerIP,
		IPDelay:        p.IPDelay,
		IPRate:         p.IPRate,
		Hours:          p.hours(),
	}
}

// overrides returns the overrides of the frontier: each with all settings in force for its hosts.
func (c *Config) overrides() []frontier.Override {
	var list []frontier.Override
	general := c.PolitenessOptions()
	for i, o := range c.Politeness.Overrides {
		in := frontier.Override{Politeness: general, HostBudget: uint32(c.Limits.HostPages)}
		p := &in.Politeness
		p.Delay = orElse(o.Delay, p.Delay)
		p.AdaptiveFactor = orElse(o.AdaptiveFactor, p.AdaptiveFactor)
		p.PerHost = orElse(o.PerHost, p.PerHost)
		p.Bandwidth = int64(orElse(o.HostBandwidth, c.Politeness.HostBandwidth))
		p.Paused = o.Pause
		p.Hours = o.hours(&c.Politeness, general.Hours, i+1)
		if o.Delay != nil || o.Pause {
			p.Setting = fmt.Sprintf("politeness.overrides, item %d", i+1)
		}
		in.HostBudget = uint32(orElse(o.HostPages, c.Limits.HostPages))
		for _, pattern := range o.Hosts {
			if canonical, ok := hostPattern(pattern); ok {
				in.Hosts = append(in.Hosts, canonical)
			}
		}
		list = append(list, in)
	}
	return list
}

// ranges returns the address ranges of the frontier.
func (c *Config) ranges() []frontier.Range {
	var list []frontier.Range
	for _, a := range c.Politeness.Addresses {
		if network, ok := addressRange(a.Range); ok {
			list = append(list, frontier.Range{Network: network, Shared: a.Shared, Limit: politeness.LimitOptions{
				InFlight: orElse(a.PerIP, c.Politeness.PerIP), Delay: orElse(a.IPDelay, c.Politeness.IPDelay),
				Rate: orElse(a.IPRate, c.Politeness.IPRate),
			}})
		}
	}
	return list
}

// orElse returns the value of an item, or else the general one.
func orElse[T any](value *T, general T) T {
	if value == nil {
		return general
	}
	return *value
}

// hostPattern returns a host name or a pattern such as *.example.com in canonical form.
func hostPattern(text string) (string, bool) {
	name, below := strings.CutPrefix(text, "*.")
	u, err := weburl.Parse("http://" + name + "/")
	if err != nil || u.RequestURI() != "/" || u.Origin().Port != 80 || strings.ContainsAny(name, "*@/?#: \t") &&
		!strings.HasPrefix(name, "[") {
		return "", false
	}
	if below {
		return "*." + u.Host(), true
	}
	return u.Host(), true
}

// addressRange parses a network, or a single address.
func addressRange(text string) (netip.Prefix, bool) {
	if network, err := netip.ParsePrefix(text); err == nil {
		return network.Masked(), true
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, false
	}
	address = address.Unmap()
	return netip.PrefixFrom(address, address.BitLen()), true
}

// politeness checks the numbers and the lists of the section.
func (k *checker) politeness() {
	p := k.c.Politeness
	between(k, "politeness.delay", p.Delay, 0, week)
	between(k, "politeness.adaptive_factor", p.AdaptiveFactor, 0, 1000)
	between(k, "politeness.adaptive_max", p.AdaptiveMax, time.Millisecond, week)
	between(k, "politeness.per_host", p.PerHost, 1, 256)
	between(k, "politeness.per_ip", p.PerIP, 1, 4096)
	k.bandwidth("politeness.host_bandwidth", p.HostBandwidth)
	between(k, "politeness.ip_delay", p.IPDelay, 0, week)
	between(k, "politeness.ip_rate", p.IPRate, 0, politeness.MaxRate)
	between(k, "politeness.per_domain", p.PerDomain, 0, 4096)
	between(k, "politeness.domain_delay", p.DomainDelay, 0, week)
	k.hours()
	k.overrides()
	k.addresses()
	k.groups()
}

func (k *checker) overrides() {
	const key = "politeness.overrides"
	if len(k.c.Politeness.Overrides) > 10_000 {
		k.conflict(key, "want at most 10000 items; a pattern such as *.example.com stands for many hosts")
		return
	}
	seen := map[string]int{}
	for i, o := range k.c.Politeness.Overrides {
		reject := func(read, message string) { k.rejectItem(key, i, read, message) }
		if len(o.Hosts) == 0 {
			reject("item "+fmt.Sprint(i+1), "want hosts: a list of names, or patterns such as *.example.com")
		}
		for _, pattern := range o.Hosts {
			canonical, ok := hostPattern(pattern)
			if !ok {
				reject(pattern, "want the name of a host, such as www.example.com, or a pattern for all names below "+
					"one, such as *.example.com")
			} else if first, twice := seen[canonical]; twice {
				reject(pattern, fmt.Sprintf("is in item %d already; one item applies to a host: keep it in one", first))
			}
			seen[canonical] = i + 1
		}
		itemBetween(reject, "delay", o.Delay, 0, week)
		itemBetween(reject, "adaptive_factor", o.AdaptiveFactor, 0, 1000)
		itemBetween(reject, "per_host", o.PerHost, 1, 256)
		if b := orElse(o.HostBandwidth, 0); !isBandwidth(b) {
			reject("host_bandwidth: "+format(b), wantBandwidth)
		}
		itemBetween(reject, "host_pages", o.HostPages, 0, math.MaxInt32)
		checkHours(o.Hours, func(_ int, item, message string) { reject("hours: "+item, message) })
		delay, factor := orElse(o.Delay, k.c.Politeness.Delay), orElse(o.AdaptiveFactor, k.c.Politeness.AdaptiveFactor)
		if o.PerHost != nil && *o.PerHost > 1 && (delay > 0 || factor > 0) {
			reject(fmt.Sprintf("per_host: %d", *o.PerHost), "more than 1 needs delay: 0s and adaptive_factor: 0: a "+
				"host with a delay gets one request at a time")
		}
	}
}

func (k *checker) addresses() {
	const key = "politeness.addresses"
	var seen []netip.Prefix
	for i, a := range k.c.Politeness.Addresses {
		reject := func(read, message string) { k.rejectItem(key, i, read, message) }
		network, ok := addressRange(a.Range)
		switch {
		case !ok:
			reject(a.Range, "want range: a network such as 192.0.2.0/24 or 2001:db8::/32, or one IP address")
		case slices.Contains(seen, network):
			reject(a.Range, "is in the list twice; keep one")
		}
		seen = append(seen, network)
		itemBetween(reject, "per_ip", a.PerIP, 1, 4096)
		itemBetween(reject, "ip_delay", a.IPDelay, 0, week)
		itemBetween(reject, "ip_rate", a.IPRate, 0, politeness.MaxRate)
	}
}

// itemBetween rejects a value of an item outside of least and most.
func itemBetween[T time.Duration | int | float64](reject func(read, message string), name string, value *T, least,
	most T) {
	if value != nil && (*value < least || *value > most) {
		reject(name+": "+format(*value), "want "+format(least)+" to "+format(most))
	}
}
