package frontier

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Options configure a Frontier. Those in Change can be replaced while it lives.
type Options struct {
	Live
	Robots robots.Options
	Tokens []string // product tokens; the first one that robots.txt names counts

	Ranges []Range                 // addresses with limits of their own
	Groups []Group                 // hosts that share a server
	Domain politeness.LimitOptions // shared by all hosts of a registrable domain; zero: no limit

	OnlyJobs  bool   // no URL of the frontier is given out: there are visits only
	Obey      bool   // false: only the crawl delays of robots.txt are honoured, not the rules
	NoRobots  bool   // no robots.txt is fetched, and every URL is allowed
	NoLookups bool   // no name is looked up: leases have no address, and addresses no limits
	Batches   bool   // remote fetchers get batches of URLs, whatever the delay: see LeaseRemote
	Walls     bool   // hosts that put up a wall are left alone; see internal/rules/wall
	MaxDepth  uint16 // 0: no limit
	// SeedPages are the marks of MarkSeedPages that the store has.
	SeedPages    map[string][]byte
	MaxRedirects uint8
	MaxAttempts  uint8         // failed attempts before a URL fails
	RetryDelay   time.Duration // before the second attempt; doubles with each
	MaxSitemaps  int           // sitemaps requested of a host by one process, and a quarter of its budget; 0: no limit
	DomainBudget uint32        // pages fetched from all hosts of a registrable domain; 0: no limit
	Session      int           // requests to a host in a row before it makes room for others; 0: no limit
	Workers      int           // the most requests in flight; 0: unknown, and all hosts count as quick
	Heads        int           // the most URLs of an origin in memory, of each kind
	ActiveHosts  int           // the most active hosts
	Hosts        int           // as many will be restored, about
	ActiveBytes  int           // memory of heads and rules above which hosts become dormant early
	HeldSince    time.Time     // every host waits a full delay from here; zero: none does
	Jitter       func() float64

	// Known returns the addresses of a name that needs no lookup: an address literal, or one that
	// was looked up recently; every is as in a Lease. False: it has to be looked up. Known must not
	// block. Nil: every name has to be looked up.
	Known func(name string, every bool) (ResolveReport, bool)

	// Owns reports whether the requests to a host are for this frontier to lease. Nil: all are.
	Owns func(host string) bool

	// Deliver reports whether an address is of a delivery network, which needs no budget of its own:
	// see politeness.Budget. Nil: none is.
	Deliver func(netip.Addr) bool

	// Gate decides about requests together with other frontiers; nil: there are no others.
	Gate Gate

	Recrawl Recrawler // plans recrawls; nil: nothing is recrawled
}

// Live are the options that Frontier.Change can replace.
type Live struct {
	Politeness   politeness.Options
	Overrides    []Override // for some hosts, instead of Politeness and HostBudget
	HostBudget   uint32     // pages fetched from a host, over all runs; 0: no limit
	RecrawlShare float64    // share of recrawls in the requests for pages while there is too much to do, 0 to 1
	Resolvers    int        // the most lookups in flight
}

// DefaultOptions returns the options of a polite crawler.
func DefaultOptions() Options {
	return Options{
		Live:   Live{Politeness: politeness.DefaultOptions(), RecrawlShare: 0.5, Resolvers: 64},
		Robots: robots.DefaultOptions(), Tokens: []string{"amble"}, Obey: true, Walls: true,
		MaxRedirects: 5, MaxAttempts: 5, RetryDelay: time.Minute, Session: 3000,
		Heads: 12, MaxSitemaps: 10_000, ActiveHosts: 20_000, ActiveBytes: 256 << 20,
	}
}

// Validate returns an error that names every option out of range.
func (o Options) Validate() error {
	var errs []error
	for _, v := range []struct {
		name string
		n    int
	}{
		{"MaxAttempts", int(o.MaxAttempts)}, {"Resolvers", o.Resolvers}, {"Heads", o.Heads},
		{"ActiveHosts", o.ActiveHosts}, {"ActiveBytes", o.ActiveBytes}, {"Tokens", len(o.Tokens)},
	} {
		if v.n <= 0 {
			errs = append(errs, fmt.Errorf("frontier: %s is %d, should be at least 1", v.name, v.n))
		}
	}
	if o.Session < 0 {
		errs = append(errs, fmt.Errorf("frontier: Session is %d, should not be negative", o.Session))
	}
	if !(o.RecrawlShare >= 0 && o.RecrawlShare <= 1) {
		errs = append(errs, fmt.Errorf("frontier: RecrawlShare is %g, should be between 0 and 1", o.RecrawlShare))
	}
	if len(o.Overrides) > maxOverrides {
		errs = append(errs, fmt.Errorf("frontier: %d Overrides, should be at most %d", len(o.Overrides), maxOverrides))
	}
	for i := range o.Overrides {
		errs = append(errs, o.Overrides[i].Politeness.Validate())
	}
	for i := range o.Ranges {
		errs = append(errs, o.Ranges[i].Limit.Validate())
	}
	if len(o.Groups) > maxOverrides {
		errs = append(errs, fmt.Errorf("frontier: %d Groups, should be at most %d", len(o.Groups), maxOverrides))
	}
	for i := range o.Groups {
		errs = append(errs, o.Groups[i].Limit.Validate())
	}
	return errors.Join(append(errs, o.Politeness.Validate(), o.Domain.Validate())...)
}

// Override replaces the settings of some hosts. If several overrides match a host, only the closest
// one counts: the host's own name first, then the pattern with the most labels.
type Override struct {
	Hosts      []string           // names, and patterns such as *.example.com: all names below it, not itself
	Politeness politeness.Options // in force for these hosts
	HostBudget uint32             // pages fetched from each of them, over all runs; 0: no limit
}

// maxOverrides bounds the number of overrides, and of groups, so that an index fits in a host.
const maxOverrides = math.MaxUint16 - 1

// overrides finds the override of a host. It is immutable.
type overrides struct {
	list []Override
	patterns
}

func newOverrides(list []Override) *overrides {
	o := &overrides{list: list, patterns: newPatterns()}
	for i := range list {
		o.add(list[i].Hosts, i)
	}
	return o
}

// FindOverride returns a function that returns the index of a host's override; -1: it has none. Any
// goroutine may call it.
func FindOverride(list []Override) func(host string) int {
	all := newOverrides(list)
	return func(host string) int { return int(all.find(host)) - 1 }
}

// HostPoliteness returns a function that returns the options in force for a host. Any goroutine may
// call it.
func (o Options) HostPoliteness() func(host string) *politeness.Options {
	all := newOverrides(o.Overrides)
	return func(host string) *politeness.Options {
		if i := all.find(host); i > 0 {
			return &all.list[i-1].Politeness
		}
		return &o.Politeness
	}
}

// politeness is the options in force for a host.
func (b *base) politeness(h *host) *politeness.Options {
	if h.override > 0 {
		return &b.overrides.list[h.override-1].Politeness
	}
	return &b.o.Politeness
}

// budget is the number of pages that may be fetched from a host; 0: no limit.
func (b *base) budget(h *host) uint32 {
	if h.override > 0 {
		return b.overrides.list[h.override-1].HostBudget
	}
	return b.o.HostBudget
}

// Change has the options that can be replaced while the frontier lives.
type Change struct {
	Live
	Workers int
	// Overridden has the index of the override of hosts that one matches. The override of a missing
	// host is found when it is loaded.
	Overridden map[storage.HostID]int
}

// Change puts other options in force, for requests that begin from now on. What remains of a host's
// delay since its last request follows the new delay at once.
func (f *Frontier) Change(c Change, now time.Time) {
	f.readClock(now)
	before := make(map[*host]*politeness.Options) // of hosts that are not in memory
	general := f.o.Politeness
	for h := range f.hosts.all {
		if h.active == nil {
			if before[h] = f.politeness(h); h.override == 0 {
				before[h] = &general
			}
		}
	}
	f.o.Live, f.o.Workers = c.Live, c.Workers
	f.overrides = newOverrides(c.Overrides)
	for key, l := range f.limits.all {
		if key.Network.IsValid() {
			_, o := f.limits.network(key.Network.Addr())
			l.whole = o
			l.polite.SetOptions(f.limits.ownPart(o))
		}
	}
	for h := range f.hosts.all {
		f.changeHost(h, before[h], c.Overridden, f.instant(now))
	}
}

func (f *Frontier) changeHost(
	h *host, before *politeness.Options, overridden map[storage.HostID]int, now instant,
) {
	h.override = 0
	if i, ok := overridden[h.id]; ok {
		h.override = uint16(i + 1)
	}
	if a := h.active; a != nil {
		if a.name != "" {
			h.override = f.overrides.find(a.name)
		}
		if a.loaded {
			a.polite.SetOptions(f.politeness(h))
		}
		f.schedule(h, now)
		return
	}
	f.lanes.remove(h)
	switch h.waitReason {
	case politeness.ReasonDelay:
		// It waits for the configured delay since its last request.
		longer := f.politeness(h).Delay - before.Delay
		h.ready += instant(longer)
		h.delay += float32(longer.Seconds())
	case politeness.ReasonPause:
		h.workAt = always // the pause may be that of an override which is gone; loading the host decides
	case politeness.ReasonHours:
		if !before.Hours.Equal(f.politeness(h).Hours) { // loading the host decides, from what is committed
			h.ready, h.waitReason = min(h.ready, now), politeness.ReasonNone
		}
	}
	f.schedule(h, now)
}
