package frontier

import (
	"math"
	"strings"

	"github.com/amble-crawler/amble/politeness"
)

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
