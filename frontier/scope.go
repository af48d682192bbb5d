package frontier

import (
	"hash/fnv"
	"io"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Mode says how far from the seeds the crawl goes.
type Mode = seeds.Mode

// The modes of scope.mode.
const (
	ModeHost   = seeds.ModeHost
	ModeDomain = seeds.ModeDomain
	ModePrefix = seeds.ModePrefix
	ModeAny    = seeds.ModeAny
)

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

// Scope decides which URLs belong to the crawl. It is immutable, so any goroutine may use it; WithSeeds,
// WithExpressions and WithOptOuts return another one.
type Scope struct {
	seeds            *seeds.Set
	include, exclude []*regexp.Regexp
	optOuts          *optout.List // those in force; nil: there are none
	checksOutside    bool         // see WithChecks
}

// NewScope returns the scope of the given seeds. A URL must also match one of include, if there are
// any, and none of exclude.
func NewScope(mode Mode, include, exclude []*regexp.Regexp, urls ...weburl.URL) *Scope {
	given := make([]seeds.Seed, len(urls))
	for i, u := range urls {
		given[i].URL = u
	}
	return &Scope{seeds: seeds.NewSet(mode).With(given), include: include, exclude: exclude}
}

// Seeds returns the seeds.
func (s *Scope) Seeds() *seeds.Set { return s.seeds }

// WithSeeds returns the scope of other seeds.
func (s *Scope) WithSeeds(set *seeds.Set) *Scope {
	other := *s
	other.seeds = set
	return &other
}

// WithExpressions returns the scope with other expressions.
func (s *Scope) WithExpressions(include, exclude []*regexp.Regexp) *Scope {
	other := *s
	other.include, other.exclude = include, exclude
	return &other
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
	texts := []string{s.seeds.Mode().String(), strconv.FormatUint(s.seeds.Sum(), 16), "include"}
	for _, e := range s.include {
		texts = append(texts, e.String())
	}
	texts = append(texts, "exclude")
	for _, e := range s.exclude {
		texts = append(texts, e.String())
	}
	texts = append(texts, "outside", strconv.FormatBool(s.checksOutside), "opt-outs")
	for _, e := range s.optOuts.All() {
		texts = append(texts, string(e.Scope), e.Value, strconv.FormatBool(e.Until.IsZero()))
	}
	return sumOf(texts...)
}

// Check returns whether a URL belongs to the crawl, and why. from is how it was reached; the zero value says nothing.
func (s *Scope) Check(u weburl.URL, from seeds.Ref) ScopeVerdict {
	if s.isOptedOut(u) {
		return OptedOut
	}
	return s.checkSettings(u, from)
}

// Keeps reports whether a link is stored: it is in the scope, or nothing but an opt-out that will
// end keeps it out. Such a URL is excluded when its turn comes, and put back when the opt-out ends.
func (s *Scope) Keeps(u weburl.URL, from seeds.Ref) bool {
	e, optedOut := s.OptOut(u)
	return !(optedOut && e.Until.IsZero()) && s.checkSettings(u, from) == InScope
}

// checkSettings is Check without opt-outs.
func (s *Scope) checkSettings(u weburl.URL, from seeds.Ref) ScopeVerdict {
	has := s.seeds.Has(u, from)
	switch checked := s.checksOutside && from == seeds.Checked && !has; {
	case !has && !checked:
		return OutOfSeeds
	case !checked && len(s.include) > 0 && !matchesAny(s.include, u.String()):
		return NotIncluded
	case matchesAny(s.exclude, u.String()):
		return IsExcluded
	}
	return InScope
}

// CheckSitemap returns whether a sitemap may be read for the crawl. Unlike the URLs that it lists,
// it need not be in a folder of the seeds or match an include expression.
func (s *Scope) CheckSitemap(u weburl.URL, from seeds.Ref) ScopeVerdict {
	if s.isOptedOut(u) {
		return OptedOut
	}
	switch {
	case !s.seeds.HasOrigin(u.Origin().String()) && !s.seeds.Has(u, from):
		return OutOfSeeds
	case matchesAny(s.exclude, u.String()):
		return IsExcluded
	}
	return InScope
}

// CheckHead is Check for a URL of the store. A requisite may be anywhere.
func (s *Scope) CheckHead(u weburl.URL, head *storage.Entry) ScopeVerdict {
	switch {
	case !head.IsRequisite():
	case s.isOptedOut(u):
		return OptedOut
	case matchesAny(s.exclude, u.String()):
		return IsExcluded
	default:
		return InScope
	}
	if head.Sitemap {
		return s.CheckSitemap(u, RefOf(head))
	}
	return s.Check(u, RefOf(head))
}

// RefOf returns how a URL of the store was reached.
func RefOf(head *storage.Entry) seeds.Ref { return seeds.Ref(head.From) }

func matchesAny(expressions []*regexp.Regexp, s string) bool {
	return slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(s) })
}

// WithChecks returns the scope with links that leave it, or without. A URL that was reached by seeds.Checked is in it
// then, to be checked: see OnlyChecks.
func (s *Scope) WithChecks(outside bool) *Scope {
	other := *s
	other.checksOutside = outside
	return &other
}

// ChecksOutside reports whether links that leave the scope are checked.
func (s *Scope) ChecksOutside() bool { return s.checksOutside }

// OnlyChecks reports whether a URL of the store is checked only: it answers, or it does not. Nothing of it is read.
func (s *Scope) OnlyChecks(u weburl.URL, head *storage.Entry) bool {
	return RefOf(head) == seeds.Checked && s.seeds.Home(u) == nil
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
