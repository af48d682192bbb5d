package config

import (
	"fmt"
	"regexp"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/politeness"
)

// Group is hosts that share a server, with limits of all of them together.
type Group struct {
	Name     string        `mapstructure:"name"`
	Hosts    []string      `mapstructure:"hosts"`                     // names, and patterns such as *.example.com
	CNAME    []string      `mapstructure:"cname"`                     // the same, of the targets of CNAME records
	PerGroup int           `mapstructure:"per_group" range:"0..4096"` // requests in flight; 0: no limit
	Delay    time.Duration `mapstructure:"delay" range:"0s..168h"`    // least time between two requests
}

// groups returns the groups of the frontier.
func (c *Config) groups() []frontier.Group {
	var list []frontier.Group
	for _, g := range c.Politeness.Groups {
		list = append(list, frontier.Group{Name: g.Name, Hosts: hostPatterns(g.Hosts), CNAMEs: hostPatterns(g.CNAME),
			Limit: politeness.LimitOptions{InFlight: g.PerGroup, Delay: g.Delay}})
	}
	return list
}

// groupName matches the names of groups, which reports show.
var groupName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// groups checks the groups. A name belongs to one of them.
func (k *checker) groups() {
	const key = "politeness.groups"
	if len(k.c.Politeness.Groups) > 10_000 {
		k.conflict(key, "want at most 10000 items; a pattern such as *.example.com stands for many hosts")
		return
	}
	names, hosts, aliases := map[string]int{}, map[string]int{}, map[string]int{}
	for i, g := range k.c.Politeness.Groups {
		reject := func(read, message string) { k.rejectItem(key, i, read, message) }
		item := fmt.Sprintf("item %d", i+1)
		if first, twice := names[g.Name]; twice {
			reject(g.Name, fmt.Sprintf("is the name of item %d already", first))
		} else if !groupName.MatchString(g.Name) {
			reject(item, "want name: up to 64 letters, digits, dots, hyphens and underscores")
		}
		names[g.Name] = i + 1
		if len(g.Hosts)+len(g.CNAME) == 0 {
			reject(item, "want hosts or cname: a list of names, or patterns such as *.example.com")
		}
		if g.PerGroup == 0 && g.Delay == 0 {
			reject(item, "want per_group or delay: without one of them the group limits nothing")
		}
		groupPatterns(reject, g.Hosts, hosts, i+1)
		groupPatterns(reject, g.CNAME, aliases, i+1)
	}
}

// groupPatterns rejects names and patterns that are none, or that an item before n has.
func groupPatterns(reject func(read, message string), list []string, seen map[string]int, n int) {
	for _, pattern := range list {
		name, ok := hostPattern(pattern)
		if !ok {
			reject(pattern, wantPattern)
		} else if first, twice := seen[name]; twice {
			reject(pattern, fmt.Sprintf("is in item %d already; a host is in one group: keep it in one", first))
		}
		seen[name] = n
	}
}
