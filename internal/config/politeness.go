package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
)

// Politeness bounds how fast hosts, addresses and domains are fetched from.
type Politeness struct {
	Delay          time.Duration  `mapstructure:"delay" range:"0s..168h" is:"live shared"`
	AdaptiveFactor float64        `mapstructure:"adaptive_factor" range:"0..1000" default:"1" is:"live shared"`
	AdaptiveMax    time.Duration  `mapstructure:"adaptive_max" range:"1ms..168h" is:"live shared"`
	PerHost        int            `mapstructure:"per_host" range:"1..256" is:"live shared"`
	Hours          []string       `mapstructure:"hours" is:"live shared"`
	TimeZone       string         `mapstructure:"time_zone" default:"UTC" is:"live shared"`
	HostBandwidth  ByteSize       `mapstructure:"host_bandwidth" range:"0|1KiB..1TiB" is:"live shared"`
	PerIP          int            `mapstructure:"per_ip" range:"1..4096" is:"live shared"`
	IPDelay        time.Duration  `mapstructure:"ip_delay" range:"0s..168h" is:"live shared"`
	IPRate         float64        `mapstructure:"ip_rate" range:"0..1000" default:"5" is:"live shared"`
	PerDomain      int            `mapstructure:"per_domain" range:"0..4096" is:"shared"`
	DomainDelay    time.Duration  `mapstructure:"domain_delay" range:"0s..168h" is:"shared"`
	Walls          bool           `mapstructure:"walls" is:"shared"`
	Addresses      []AddressRange `mapstructure:"addresses" is:"shared"`
	Groups         []Group        `mapstructure:"groups" is:"shared"`
	Overrides      []Override     `mapstructure:"overrides" is:"live shared"`
}

// AddressRange gives a range of IP addresses limits of its own. A nil field is as for all
// addresses.
type AddressRange struct {
	Range   string         `mapstructure:"range"`                     // 192.0.2.0/24, or one address
	PerIP   *int           `mapstructure:"per_ip" range:"1..4096"`    // requests in flight
	IPDelay *time.Duration `mapstructure:"ip_delay" range:"0s..168h"` // least time between two requests
	IPRate  *float64       `mapstructure:"ip_rate" range:"0..1000"`   // requests a second at first; 0: no budget
	Shared  bool           `mapstructure:"shared"`                    // the whole range counts as one address
}

// Override gives hosts settings of their own. A nil field is as for all hosts.
type Override struct {
	Hosts          []string       `mapstructure:"hosts"` // names, and patterns such as *.example.com
	Delay          *time.Duration `mapstructure:"delay" range:"0s..168h"`
	AdaptiveFactor *float64       `mapstructure:"adaptive_factor" range:"0..1000"`
	PerHost        *int           `mapstructure:"per_host" range:"1..256"`
	HostBandwidth  *ByteSize      `mapstructure:"host_bandwidth" range:"0|1KiB..1TiB"`
	HostPages      *int           `mapstructure:"host_pages" range:"0..2147483647"` // limits.host_pages of each of them
	Hours          []string       `mapstructure:"hours"`                            // nil: those of all; empty: always
	Pause          bool           `mapstructure:"pause"`                            // nothing is fetched from them
}

// PolitenessOptions returns the options of politeness for hosts without an override.
func (c *Config) PolitenessOptions() politeness.Options {
	all, _ := c.options()
	o := all.Frontier.Politeness
	o.Hours = c.Politeness.hours()
	return o
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
		in.Hosts = hostPatterns(o.Hosts)
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

// wantPattern says what a host pattern is.
const wantPattern = "want the name of a host, such as www.example.com, or a pattern for all names below one, such as " +
	"*.example.com"

// hostPatterns returns those of a list, which was checked, in canonical form.
func hostPatterns(list []string) (all []string) {
	for _, pattern := range list {
		if canonical, ok := hostPattern(pattern); ok {
			all = append(all, canonical)
		}
	}
	return all
}

// checkPatterns rejects what is no host pattern.
func checkPatterns(list []string, reject func(read, message string)) {
	for _, pattern := range list {
		if _, ok := hostPattern(pattern); !ok {
			reject(pattern, wantPattern)
		}
	}
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
				reject(pattern, wantPattern)
			} else if first, twice := seen[canonical]; twice {
				reject(pattern, fmt.Sprintf("is in item %d already; one item applies to a host: keep it in one", first))
			}
			seen[canonical] = i + 1
		}
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
	}
}
