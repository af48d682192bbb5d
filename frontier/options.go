package frontier

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Options configure a Frontier. They do not change while it lives.
type Options struct {
	Politeness politeness.Options
	Robots     robots.Options
	Tokens     []string // product tokens, the first that robots.txt names counts

	Overrides []Override              // for some hosts, in place of Politeness and HostBudget
	Ranges    []Range                 // addresses with limits of their own
	Domain    politeness.LimitOptions // of all hosts of a registrable domain together; zero: no limit

	Obey         bool   // false: rules are not asked; Crawl-delay is honoured all the same
	MaxDepth     uint16 // 0: no limit
	MaxRedirects uint8
	MaxAttempts  uint8         // failed attempts before a URL is given up
	RetryDelay   time.Duration // before the second attempt; doubles with each
	HostBudget   uint32        // pages fetched of a host in all, over all runs; 0: no limit
	DomainBudget uint32        // pages fetched of all hosts of a registrable domain; 0: no limit
	Session      int           // requests to a host in a row before it makes room for hosts that wait for it; 0: no limit
	Workers      int           // requests under way at most; 0: nobody knows, then all hosts are equal, quick or slow
	Resolvers    int           // names being looked up at a time
	Heads        int           // queued URLs of an origin held in memory at most
	ActiveHosts  int           // hosts active at a time
	ActiveBytes  int           // memory of heads and rules from which on hosts go dormant early
	OwedSince    time.Time     // every host owes a full delay from here; zero: none does
	Jitter       func() float64

	// Known tells the addresses of a name for which no name server has to be asked: an address
	// literal, or one that was looked up a short while ago. False: it has to be looked up. It does
	// not wait for anything. Nil: every name has to be looked up.
	Known func(name string) (ResolveReport, bool)

	Renew      Renewer // decides when pages are asked for again; nil: none is
	RenewShare float64 // of the requests for pages that renewals get where there is too much to do, 0 to 1
}

// DefaultOptions are those of a polite crawler.
func DefaultOptions() Options {
	return Options{
		Politeness: politeness.DefaultOptions(), Robots: robots.DefaultOptions(), Tokens: []string{"amble"}, Obey: true,
		MaxRedirects: 5, MaxAttempts: 5, RetryDelay: time.Minute, Session: 3000, Resolvers: 64,
		Heads: 12, RenewShare: 0.5, ActiveHosts: 20_000, ActiveBytes: 256 << 20,
	}
}

// Validate says what is wrong with the options.
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
	if !(o.RenewShare >= 0 && o.RenewShare <= 1) {
		errs = append(errs, fmt.Errorf("frontier: RenewShare is %g, should be between 0 and 1", o.RenewShare))
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
	return errors.Join(append(errs, o.Politeness.Validate(), o.Domain.Validate())...)
}

// Override replaces the settings of some hosts. Where several name a host, the one that names it most closely
// counts, and no other: its own name first, then the pattern with the most labels.
type Override struct {
	Hosts      []string           // names, and patterns such as *.example.com, which means all names below it but not itself
	Politeness politeness.Options // in force for them
	HostBudget uint32             // pages fetched of each of them, over all runs; 0: no limit
}

// maxOverrides is how many there may be.
const maxOverrides = math.MaxUint16 - 1

// overrides finds the override of a host. It is immutable.
type overrides struct {
	list  []Override
	exact map[string]uint16 // index in list by name
	below map[string]uint16 // index in list by the name that a pattern is about
}

func newOverrides(list []Override) *overrides {
	o := &overrides{list: list, exact: make(map[string]uint16), below: make(map[string]uint16)}
	for i := range list {
		for _, pattern := range list[i].Hosts {
			if name, below := strings.CutPrefix(pattern, "*."); below {
				o.below[name] = uint16(i)
			} else {
				o.exact[pattern] = uint16(i)
			}
		}
	}
	return o
}

// find returns one more than the index of a host's override; 0: it has none.
func (o *overrides) find(name string) uint16 {
	if len(o.list) == 0 {
		return 0
	}
	if i, ok := o.exact[name]; ok {
		return i + 1
	}
	for {
		_, rest, more := strings.Cut(name, ".")
		if !more {
			return 0
		}
		if i, ok := o.below[rest]; ok {
			return i + 1
		}
		name = rest
	}
}

// FindOverride returns a function that finds the override of a host, by its index; -1: it has none. Any goroutine may call it.
func FindOverride(list []Override) func(host string) int {
	all := newOverrides(list)
	return func(host string) int { return int(all.find(host)) - 1 }
}

// HostPoliteness returns a function that says what is in force for a host. Any goroutine may call it.
func (o Options) HostPoliteness() func(host string) *politeness.Options {
	all := newOverrides(o.Overrides)
	return func(host string) *politeness.Options {
		if i := all.find(host); i > 0 {
			return &all.list[i-1].Politeness
		}
		return &o.Politeness
	}
}

// politeness is what is in force for a host.
func (f *Frontier) politeness(h *host) *politeness.Options {
	if h.override > 0 {
		return &f.overrides.list[h.override-1].Politeness
	}
	return &f.o.Politeness
}

// budget is how many pages may be fetched of a host; 0: no limit.
func (f *Frontier) budget(h *host) uint32 {
	if h.override > 0 {
		return f.overrides.list[h.override-1].HostBudget
	}
	return f.o.HostBudget
}

// Change is what may be different from one moment to the next.
type Change struct {
	Politeness politeness.Options
	Overrides  []Override
	HostBudget uint32
	RenewShare float64
	Resolvers  int
	Workers    int
	// Overridden are the hosts that an override names, by its index. Those that are missing are found when they are loaded.
	Overridden map[storage.HostID]int
}

// Change puts other limits in force, for requests that begin from now on. What a host is owed since its last request counts by the new delay at once, longer
// or shorter.
func (f *Frontier) Change(c Change, now time.Time) {
	f.readClock(now)
	before := make(map[*host]time.Duration) // configured delays of hosts that are not in memory
	for h := range f.hosts.all {
		if h.active == nil {
			before[h] = f.politeness(h).Delay
		}
	}
	f.o.Politeness, f.o.Overrides, f.o.HostBudget, f.o.RenewShare = c.Politeness, c.Overrides, c.HostBudget, c.RenewShare
	f.o.Resolvers, f.o.Workers = c.Resolvers, c.Workers
	f.overrides = newOverrides(c.Overrides)
	for key, l := range f.limits {
		if key.domain == "" {
			_, o := f.addressLimit(key.network.Addr())
			l.polite.SetOptions(o)
		}
	}
	for h := range f.hosts.all {
		f.changeHost(h, before[h], c.Overridden, f.instant(now))
	}
}

func (f *Frontier) changeHost(h *host, before time.Duration, overridden map[storage.HostID]int, now instant) {
	h.override = 0
	if i, resolvedThen := overridden[h.id]; resolvedThen {
		h.override = uint16(i + 1)
	}
	if a := h.active; a != nil {
		if a.name != "" {
			h.override = f.overrides.find(a.name)
		}
		if a.polite != nil {
			a.polite.SetOptions(f.politeness(h))
		}
		f.schedule(h, now)
		return
	}
	f.unschedule(h)
	switch h.waitReason {
	case politeness.ReasonDelay:
		// What it waits for is the configured delay since its last request.
		longer := f.politeness(h).Delay - before
		h.ready += instant(longer)
		h.delay += float32(longer.Seconds())
	case politeness.ReasonPause:
		h.workAt = always // perhaps of an override that is gone; else it is found out when it is loaded
	}
	f.schedule(h, now)
}
