package frontier

import (
	"strings"

	"github.com/amble-crawler/amble/politeness"
)

// Group is hosts that share a server, although they have neither an address nor a domain in common,
// with the limit of the requests to all of them together. If several groups match a host, only the
// closest one counts: one with the host's name first, then the pattern with the most labels, and
// after that those of the names that its CNAME records lead to.
type Group struct {
	Name   string
	Hosts  []string // names, and patterns such as *.example.com: all names below it, not itself
	CNAMEs []string // names and patterns in the CNAME records of hosts
	Limit  politeness.LimitOptions
}

// groups finds the group of a host. It is immutable.
type groups struct {
	list           []Group
	hosts, aliases patterns
}

func newGroups(list []Group) *groups {
	g := &groups{list: list, hosts: newPatterns(), aliases: newPatterns()}
	for i := range list {
		g.hosts.add(list[i].Hosts, i)
		g.aliases.add(list[i].CNAMEs, i)
	}
	return g
}

// find returns one more than the index of the group of a host whose name is an alias for others; 0:
// it is in none.
func (g *groups) find(name string, aliases []string) uint16 {
	if i := g.hosts.find(name); i > 0 {
		return i
	}
	for _, alias := range aliases {
		if i := g.aliases.find(alias); i > 0 {
			return i
		}
	}
	return 0
}

// FindGroup returns a function that returns the name of the group that a host is in by its name
// alone; empty: it is in none. Any goroutine may call it.
func FindGroup(list []Group) func(host string) string {
	all := newGroups(list)
	return func(host string) string { return all.name(all.find(host, nil)) }
}

// name returns the name of the group with an index that find returned.
func (g *groups) name(i uint16) string {
	if i == 0 {
		return ""
	}
	return g.list[i-1].Name
}

// ofGroup is the limit of the group of a host whose name is an alias for others; nil: it is in none.
func (f *Frontier) ofGroup(name string, aliases []string) *limit {
	i := f.groups.find(name, aliases)
	if i == 0 {
		return nil
	}
	g := &f.groups.list[i-1]
	return f.limitOf(limitKey{group: g.Name}, g.Limit)
}

// groupName is the name of the group of an active host; empty: it is in none.
func (a *active) groupName() string {
	if l := a.limits[byGroup]; l != nil {
		return l.key.group
	}
	return ""
}

// patterns maps names, and patterns such as *.example.com, to indexes.
type patterns struct {
	exact map[string]uint16 // by name
	below map[string]uint16 // by the name below which a pattern matches
}

func newPatterns() patterns {
	return patterns{exact: make(map[string]uint16), below: make(map[string]uint16)}
}

// add maps patterns to an index.
func (p patterns) add(list []string, i int) {
	for _, pattern := range list {
		if name, below := strings.CutPrefix(pattern, "*."); below {
			p.below[name] = uint16(i)
		} else {
			p.exact[pattern] = uint16(i)
		}
	}
}

// find returns one more than the index of a name; 0: nothing matches. The name itself is closest,
// then the pattern with the most labels.
func (p patterns) find(name string) uint16 {
	if len(p.exact)+len(p.below) == 0 {
		return 0
	}
	if i, ok := p.exact[name]; ok {
		return i + 1
	}
	for {
		_, rest, more := strings.Cut(name, ".")
		if !more {
			return 0
		}
		if i, ok := p.below[rest]; ok {
			return i + 1
		}
		name = rest
	}
}
