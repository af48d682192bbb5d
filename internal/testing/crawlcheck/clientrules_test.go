package crawlcheck

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ruleSet is what a robots.txt says to the client.
type ruleSet struct {
	status int
	rules  []rule
	delay  time.Duration
}

type rule struct {
	text    string
	allow   bool
	length  int
	pattern *regexp.Regexp
}

// group is a group of a robots.txt.
type group struct {
	agents []string
	rules  []rule
	delay  time.Duration
}

// parseRules reads a robots.txt.
func parseRules(text, fault string) *ruleSet {
	if fault == "robots-500k" {
		text = text[:min(len(text), strings.LastIndexByte(text[:min(len(text), 64<<10)], '\n')+1)]
	}
	if fault != "robots-bom" {
		text = strings.TrimPrefix(text, "\ufeff")
	}
	var groups []*group
	last := rule{} // the same line again is not compiled again
	ended := true  // the next User-agent line begins a group
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		key, value, _ := strings.Cut(line, ":")
		if fault != "robots-syntax" {
			key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		} else {
			key = strings.NewReplacer("User-agent", "user-agent", "Disallow", "disallow", "Allow", "allow",
				"Crawl-delay", "crawl-delay").Replace(strings.ReplaceAll(key, "user-agent", ""))
			value = strings.TrimPrefix(value, " ")
		}
		switch {
		case key == "user-agent":
			if ended {
				groups = append(groups, &group{})
			}
			ended = false
			g := groups[len(groups)-1]
			if fault == "robots-several-agents" {
				g.agents = nil
			}
			g.agents = append(g.agents, value)
		case len(groups) == 0:
		case key == "allow" || key == "disallow":
			ended = true
			if value != "" {
				g := groups[len(groups)-1]
				if last.text != key+value {
					last = newRule(key == "allow", value, fault)
					last.text = key + value
				}
				g.rules = append(g.rules, last)
			}
		case key == "crawl-delay" && fault != "pace-crawl-delay":
			n, _ := strconv.Atoi(value)
			groups[len(groups)-1].delay = time.Duration(n) * time.Second
		}
	}
	r := &ruleSet{status: 200}
	if own, is := merged(groups, "refbot", fault); is && (fault != "robots-own-group" || len(groups) < 2) {
		r.rules, r.delay = own.rules, own.delay
	} else if all, is := merged(groups, "*", fault); is {
		r.rules, r.delay = all.rules, all.delay
	}
	return r
}

// merged returns the groups of a name as one.
func merged(groups []*group, name, fault string) (sum group, found bool) {
	for i, g := range groups {
		for _, agent := range g.agents {
			same := strings.EqualFold(agent, name)
			if fault == "robots-token-case" {
				same = agent == name
			}
			late := name == "*" && i > 0 && !found
			if !same || found && fault == "robots-merged" || late && fault == "robots-default-group" {
				continue
			}
			sum.rules, sum.delay, found = append(sum.rules, g.rules...), max(sum.delay, g.delay), true
		}
	}
	return sum, found
}

func newRule(allow bool, value, fault string) rule {
	if fault != "robots-escapes" {
		value = decoded(value)
	}
	text := regexp.QuoteMeta(value)
	if fault != "robots-wildcard" {
		text = strings.ReplaceAll(text, `\*`, ".*")
	}
	if end, is := strings.CutSuffix(text, `\$`); is && fault != "robots-end" {
		text = end + "$"
	}
	return rule{allow: allow, length: len(value), pattern: regexp.MustCompile("^" + text)}
}

// allows reports whether a path may be requested.
func (r *ruleSet) allows(path, fault string) bool {
	if plain, err := url.PathUnescape(path); err == nil && fault != "robots-escapes" {
		path = plain
	}
	best := rule{allow: true, length: -1}
	for _, one := range r.rules {
		if !one.pattern.MatchString(path) {
			continue
		}
		if fault == "robots-longest" {
			return one.allow
		}
		if one.length > best.length || one.length == best.length && one.allow {
			best = one
		}
	}
	return best.allow
}
