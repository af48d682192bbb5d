//go:build !core

package robots

// Policy is what a file says to one crawler, as data: the groups that apply, merged. Only Rules
// decide about URLs. The rest is for information, and for the delays.
type Policy struct {
	Group  string  // the name that applies: one of the tokens, "*", or "" for no group
	Agents []Agent // the user-agent lines with that name
	Rules  []Rule  // those with a pattern, in file order

	CrawlDelay  *float64     // seconds, as written; the largest if there are several; nil: none
	RequestRate *RequestRate // the slowest if there are several; nil: none

	VisitTimes     []Window
	ContentSignals []Usage
	ContentUsage   []Usage
}

// Policy returns what the file says to a crawler with the given tokens. Compile says which group
// applies.
func (f *File) Policy(tokens ...string) Policy {
	best := noRank
	for _, g := range f.Groups {
		for _, a := range g.Agents {
			best = min(best, rankOf([]byte(a.Value), tokens))
		}
	}
	var p Policy
	if best == noRank {
		return p
	}
	p.Group = "*"
	if best < len(tokens) {
		p.Group = tokens[best]
	}
	for _, g := range f.Groups {
		agents := ranked(g.Agents, tokens, best)
		if len(agents) == 0 {
			continue
		}
		p.Agents = append(p.Agents, agents...)
		for _, r := range g.Rules {
			if r.Pattern != "" {
				p.Rules = append(p.Rules, r)
			}
		}
		p.extend(g.Extensions, agents)
	}
	return p
}

// ranked returns the agents that name the token with the given rank.
func ranked(agents []Agent, tokens []string, rank int) []Agent {
	var found []Agent
	for _, a := range agents {
		if rankOf([]byte(a.Value), tokens) == rank {
			found = append(found, a)
		}
	}
	return found
}

// extend adds the extensions directly below one of the agents. Both lists are in file order.
func (p *Policy) extend(extensions []Extension, agents []Agent) {
	for _, e := range extensions {
		first, last := e.Agents[0].Line, e.Agents[len(e.Agents)-1].Line
		for len(agents) > 0 && agents[0].Line < first {
			agents = agents[1:]
		}
		if len(agents) > 0 && agents[0].Line <= last {
			p.add(e)
		}
	}
}

func (p *Policy) add(e Extension) {
	switch e.key {
	case keyCrawlDelay:
		if d, ok := parseDelay(e.Value); ok && (p.CrawlDelay == nil || d > *p.CrawlDelay) {
			p.CrawlDelay = &d
		}
	case keyRequestRate:
		if r, ok := parseRate(e.Value); ok && (p.RequestRate == nil || r.interval() > p.RequestRate.interval()) {
			p.RequestRate = &r
		}
	case keyVisitTime:
		if w, ok := parseWindow(e.Value); ok {
			p.VisitTimes = append(p.VisitTimes, w)
		}
	case keyContentSignal:
		p.ContentSignals = append(p.ContentSignals, newUsage(ContentSignal, e.Line, []byte(e.Value)))
	case keyContentUsage:
		p.ContentUsage = append(p.ContentUsage, newUsage(ContentUsage, e.Line, []byte(e.Value)))
	}
}
