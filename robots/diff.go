//go:build !core

package robots

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Change is one difference between two files for one crawler.
type Change struct {
	Added bool   // in the new file only; else in the old file only
	Line  int    // in its file; 0: not a single line
	Text  string // "Disallow: /a", "Crawl-delay: 5", "group: *"
}

// String returns the change as one line: "+ Disallow: /a (line 3)".
func (c Change) String() string {
	sign := "-"
	if c.Added {
		sign = "+"
	}
	if c.Line == 0 {
		return sign + " " + c.Text
	}
	return fmt.Sprintf("%s %s (line %d)", sign, c.Text, c.Line)
}

// Diff returns what changed for a crawler with the given tokens: the group that applies, its
// delays, and its rules. Two rules are the same if they are of one kind and their patterns have one
// normal form, on any line. The changes of the old file come first; each file's changes are in file
// order.
func Diff(old, new *File, tokens ...string) []Change {
	before, after := old.Policy(tokens...), new.Policy(tokens...)
	changes := append(before.without(after, false), after.without(before, true)...)
	slices.SortStableFunc(changes, func(a, b Change) int {
		if a.Added != b.Added {
			if b.Added {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Line, b.Line)
	})
	return changes
}

// without returns the statements of p that other lacks.
func (p Policy) without(other Policy, added bool) []Change {
	var changes []Change
	add := func(line int, text string) { changes = append(changes, Change{added, line, text}) }
	if p.Group != other.Group {
		add(0, "group: "+p.groupName())
	}
	if p.CrawlDelay != nil && (other.CrawlDelay == nil || *other.CrawlDelay != *p.CrawlDelay) {
		add(0, "Crawl-delay: "+strconv.FormatFloat(*p.CrawlDelay, 'f', -1, 64))
	}
	if p.RequestRate != nil && (other.RequestRate == nil || other.RequestRate.interval() != p.RequestRate.interval()) {
		add(0, "Request-rate: one request in "+toDuration(p.RequestRate.interval()).Round(time.Millisecond).String())
	}
	known := map[string]bool{}
	for _, r := range other.Rules {
		known[r.normal()] = true
	}
	for _, r := range p.Rules {
		if n := r.normal(); !known[n] {
			known[n] = true
			add(r.Line, r.String())
		}
	}
	return changes
}

func (p Policy) groupName() string {
	if p.Group == "" {
		return "none"
	}
	return p.Group
}

// normal returns the rule with its pattern in normal form.
func (r Rule) normal() string {
	return Rule{Allow: r.Allow, Pattern: string(appendPattern(nil, []byte(r.Pattern)))}.String()
}

// Equal reports whether two sets of rules are the same, apart from line numbers. Equal rules give
// every URL the same verdict. Unequal rules may do so too.
func (r *Rules) Equal(other *Rules) bool {
	return r.reason == other.reason && r.refuse == other.refuse && string(r.text) == string(other.text) &&
		slices.EqualFunc(r.literals, other.literals, func(a, b literal) bool {
			return a.end == b.end && a.line.allow() == b.line.allow()
		}) &&
		slices.EqualFunc(r.wildcards, other.wildcards, func(a, b wildcard) bool {
			return a.end == b.end && a.line.allow() == b.line.allow()
		})
}
