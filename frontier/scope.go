package frontier

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/optout"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Mode says how far from the seeds the crawl goes.
type Mode uint8

// The modes of scope.mode.
const (
	ModeHost   Mode = iota // the hosts of the seeds
	ModeDomain             // the registrable domains of the seeds
	ModePrefix             // the folders of the seeds
	ModeAny                // the whole web
)

// ParseMode parses a value of scope.mode. The error lists the allowed ones.
func ParseMode(s string) (Mode, error) {
	for m := ModeHost; m <= ModeAny; m++ {
		if m.String() == s {
			return m, nil
		}
	}
	return 0, fmt.Errorf("scope mode %q (allowed: host, domain, prefix, any)", s)
}

// String returns the mode as a value of scope.mode.
func (m Mode) String() string { return [...]string{"host", "domain", "prefix", "any"}[m] }

// ScopeVerdict says why a URL is in the scope or not.
type ScopeVerdict uint8

// The verdicts of Scope.Check.
const (
	InScope     ScopeVerdict = iota
	OutOfSeeds               // too far from every seed
	NotIncluded              // matches none of the include expressions
	IsExcluded               // matches an exclude expression
	OptedOut                 // an opt-out covers it
)

// String returns the verdict in words.
func (v ScopeVerdict) String() string {
	return [...]string{
		"in scope", "outside the scope of the seeds", "matches no scope.include", "matches scope.exclude",
		"opted out",
	}[v]
}

// Scope decides which URLs belong to the crawl. It is immutable, so any goroutine may use it; With
// returns a larger one.
type Scope struct {
	mode             Mode
	reach            map[string]struct{} // hosts, domains or prefixes, by mode
	include, exclude []*regexp.Regexp
	optOuts          *optout.List // those in force; nil: there are none
	reachSum         uint64       // of all in reach, in any order
}

// NewScope returns the scope of the given seeds. A URL must also match one of include, if there are
// any, and none of exclude.
func NewScope(mode Mode, include, exclude []*regexp.Regexp, seeds ...weburl.URL) *Scope {
	s := &Scope{mode: mode, reach: make(map[string]struct{}), include: include, exclude: exclude}
	for _, seed := range seeds {
		s.add(seed)
	}
	return s
}

// With returns the scope with more seeds.
func (s *Scope) With(seeds ...weburl.URL) *Scope {
	wider := *s
	wider.reach = maps.Clone(s.reach)
	for _, seed := range seeds {
		wider.add(seed)
	}
	return &wider
}

// WithExpressions returns the scope with other expressions.
func (s *Scope) WithExpressions(include, exclude []*regexp.Regexp) *Scope {
	other := *s
	other.include, other.exclude = include, exclude
	return &other
}

func (s *Scope) add(seed weburl.URL) {
	switch s.mode {
	case ModeHost:
		s.reaches(seed.Host())
	case ModeDomain:
		s.reaches(weburl.RegistrableDomain(seed.Host()))
	case ModePrefix:
		s.reaches(folder(seed))
		s.reaches(seed.Origin().String()) // for sitemaps; it does not end in a slash as a folder does
	}
}

func (s *Scope) reaches(name string) {
	if _, has := s.reach[name]; !has {
		s.reach[name] = struct{}{}
		s.reachSum += sumOf(name)
	}
}

func sumOf(texts ...string) uint64 {
	h := fnv.New64a()
	for _, text := range texts {
		_, _ = io.WriteString(h, text+"\x00") // it never fails
	}
	return h.Sum64()
}

// Sum returns a sum of all that decides about URLs: scopes with the same sum keep the same links. It is the same in
// each process. It takes time for each expression and opt-out.
func (s *Scope) Sum() uint64 {
	texts := []string{s.mode.String(), strconv.FormatUint(s.reachSum, 16), "include"}
	for _, e := range s.include {
		texts = append(texts, e.String())
	}
	texts = append(texts, "exclude")
	for _, e := range s.exclude {
		texts = append(texts, e.String())
	}
	texts = append(texts, "opt-outs")
	for _, e := range s.optOuts.All() {
		texts = append(texts, string(e.Scope), e.Value, strconv.FormatBool(e.Until.IsZero()))
	}
	return sumOf(texts...)
}

// folder is the URL up to the last slash of its path.
func folder(u weburl.URL) string {
	path, _, _ := strings.Cut(u.RequestURI(), "?")
	return u.Origin().String() + path[:strings.LastIndexByte(path, '/')+1]
}

// Check returns whether a URL belongs to the crawl, and why.
func (s *Scope) Check(u weburl.URL) ScopeVerdict {
	if s.isOptedOut(u) {
		return OptedOut
	}
	return s.checkSettings(u)
}

// Keeps reports whether a link is stored: it is in the scope, or nothing but an opt-out that will
// end keeps it out. Such a URL is excluded when its turn comes, and put back when the opt-out ends.
func (s *Scope) Keeps(u weburl.URL) bool {
	e, optedOut := s.OptOut(u)
	return !(optedOut && e.Until.IsZero()) && s.checkSettings(u) == InScope
}

// checkSettings is Check without opt-outs.
func (s *Scope) checkSettings(u weburl.URL) ScopeVerdict {
	switch {
	case !s.reached(u):
		return OutOfSeeds
	case len(s.include) > 0 && !matchesAny(s.include, u.String()):
		return NotIncluded
	case matchesAny(s.exclude, u.String()):
		return IsExcluded
	}
	return InScope
}

// CheckSitemap returns whether a sitemap may be read for the crawl. Unlike the URLs that it lists,
// it need not be in a folder of the seeds or match an include expression.
func (s *Scope) CheckSitemap(u weburl.URL) ScopeVerdict {
	if s.isOptedOut(u) {
		return OptedOut
	}
	_, in := s.reach[u.Origin().String()]
	switch {
	case !in && !s.reached(u):
		return OutOfSeeds
	case matchesAny(s.exclude, u.String()):
		return IsExcluded
	}
	return InScope
}

func (s *Scope) reached(u weburl.URL) bool {
	in := false
	switch s.mode {
	case ModeAny:
		in = true
	case ModeHost:
		_, in = s.reach[u.Host()]
	case ModeDomain:
		_, in = s.reach[weburl.RegistrableDomain(u.Host())]
	case ModePrefix:
		in = s.underPrefix(u)
	}
	return in
}

// underPrefix looks up each folder on the way to the URL.
func (s *Scope) underPrefix(u weburl.URL) bool {
	origin := u.Origin().String()
	path, _, _ := strings.Cut(u.RequestURI(), "?")
	for i := range len(path) {
		if path[i] == '/' {
			if _, in := s.reach[origin+path[:i+1]]; in {
				return true
			}
		}
	}
	return false
}

func matchesAny(expressions []*regexp.Regexp, s string) bool {
	return slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(s) })
}

// WithOptOuts returns the scope with other opt-outs. All of them must be in force.
func (s *Scope) WithOptOuts(list *optout.List) *Scope {
	other := *s
	other.optOuts = list
	return &other
}

// OptOuts returns the opt-outs in force.
func (s *Scope) OptOuts() *optout.List { return s.optOuts }

// OptOut returns the opt-out that covers a URL, if there is one.
func (s *Scope) OptOut(u weburl.URL) (optout.Entry, bool) { return s.optOuts.URL(u, time.Time{}) }

func (s *Scope) isOptedOut(u weburl.URL) bool {
	_, is := s.OptOut(u)
	return is
}

// optedOut returns the outcome of a URL that an opt-out covers.
func optedOut() storage.Outcome {
	return storage.Outcome{State: storage.Excluded, Reason: storage.ReasonOptOut}
}

// OptOutOutcome returns the outcome of a URL that opted out before it was fetched.
func OptOutOutcome(now time.Time) storage.Outcome {
	o := optedOut()
	o.At = now
	return o
}
