package crawlcheck

import (
	"net/url"
	"slices"
	"strings"
)

// Level is how binding a rule is.
type Level string

// The levels: what a standard demands, what one or the search engines' documentation recommends, and
// what the operators of sites expect.
const (
	Must     Level = "must"
	Should   Level = "should"
	Courtesy Level = "courtesy"
)

// Verdict is what a run has shown about a station.
type Verdict string

// The verdicts. Only Holds is a pass.
const (
	Holds    Verdict = "holds"
	Broken   Verdict = "broken"
	NotShown Verdict = "not shown" // the crawler never got there
	NotRun   Verdict = "not run"   // the way in which the crawler reaches the web cannot show it
)

// Station is a rule of good manners, and the hosts of the web that show whether a crawler keeps it.
type Station struct {
	Name   string // GROUP-WHAT
	Level  Level
	Rule   string // the sentence it judges by
	Source string // where that is written
	Mend   string // what to do if it is broken

	needs need
	build func(*host)     // nil: it has no host of its own and judges all requests
	judge func(*evidence) // nil: open pages are requested, closed ones are not
}

// Group returns the first word of the name.
func (s Station) Group() string {
	group, _, _ := strings.Cut(s.Name, "-")
	return group
}

// need is what a station needs of a run.
type need uint8

const (
	names  need = 1 << iota // hosts have names, whose addresses the crawler looks up
	kill                    // the crawler is killed and started again
	secure                  // hosts speak https, whose authority the crawler trusts
)

// String says what is needed.
func (n need) String() string {
	switch n {
	case names:
		return "it needs hosts whose names the crawler looks up: run with --names"
	case secure:
		return "it needs https: run with --https, and let the crawler trust the authority {ca}"
	}
	return "it needs a crawler that is killed and started again: run with --kill"
}

// Stations returns all stations, in the order of their groups.
func Stations() []Station {
	return slices.Concat(robotsStations(), robotsFailures(), paceStations(), directiveStations(), needlessStations(),
		trapStations(), wallStations(), honestyStations(), bodyStations(), restartStations())
}

// judgePages holds if all open pages of the station were requested, and no closed one.
func judgePages(e *evidence) {
	for _, h := range e.hosts {
		for _, q := range e.log.Host(h.name).Pages() {
			for _, closed := range h.shut {
				if strings.HasPrefix(decoded(q.Path), decoded(h.own(closed))) {
					e.broken("it requested "+q.Path+", which is not allowed", q)
				}
			}
		}
		for _, open := range h.opened {
			if len(e.page(h, open)) == 0 {
				e.missing("it never requested " + h.own(open))
			}
		}
	}
}

// decoded returns a path without percent-encoding, as far as it can be removed.
func decoded(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}
