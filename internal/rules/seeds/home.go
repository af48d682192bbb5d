package seeds

import (
	"iter"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Get returns the seed with a URL; nil: there is none.
func (s *Set) Get(u weburl.URL) *Member {
	p := s.hosts.get(u.Host())
	if p == nil {
		return nil
	}
	if i, found := slices.BinarySearchFunc(p.all, u.String(), compareURL); found {
		return p.all[i]
	}
	return nil
}

// Home returns the seed whose scope a URL is in, the nearest one if there are several: the one with this URL, then by
// the longest common folder, then another one of the host, then of the domain; of equal ones the first by URL. Nil: it
// is in the scope of none.
func (s *Set) Home(u weburl.URL) *Member {
	if p := s.hosts.get(u.Host()); p != nil {
		if m := p.home(u); m != nil {
			return m
		}
	}
	if s.domains.isEmpty() {
		return nil
	}
	if p := s.domains.get(weburl.RegistrableDomain(u.Host())); p != nil {
		if p.folders != nil {
			return first(p.wide, u)
		}
		return first(p.all, u)
	}
	return nil
}

// home returns the nearest seed of a host.
func (p *place) home(u weburl.URL) *Member {
	text := u.String()
	if len(p.all) == 1 {
		if m := p.all[0]; (m.Mode != ModePrefix || strings.HasPrefix(text, folder(m.URL.String()))) && m.accepts(u) {
			return m
		}
		return nil
	}
	if i, found := slices.BinarySearchFunc(p.all, text, compareURL); found && p.all[i].accepts(u) {
		return p.all[i]
	}
	if p.folders == nil {
		return p.nearest(u)
	}
	path, _, _ := strings.Cut(text, "?")
	for end := len(path); end > 0; end-- {
		if path[end-1] != '/' {
			continue
		}
		if m := first(p.folders[path[:end]], u); m != nil {
			return m
		}
	}
	return first(p.wide, u)
}

// first returns the first seed that accepts a URL.
func first(of []*Member, u weburl.URL) *Member {
	if i := slices.IndexFunc(of, func(m *Member) bool { return m.accepts(u) }); i >= 0 {
		return of[i]
	}
	return nil
}

// nearest is home for few seeds.
func (p *place) nearest(u weburl.URL) (best *Member) {
	longest := -1
	for _, m := range p.all {
		length := 0
		if f := folder(m.URL.String()); strings.HasPrefix(u.String(), f) {
			length = len(f)
		}
		if length > longest && (length > 0 || m.Mode != ModePrefix) && m.accepts(u) {
			best, longest = m, length
		}
	}
	return best
}

// Depth returns the depth of the deepest page of a seed, which may be nil, in a crawl with a limit of its own; 0 is no
// limit.
func (m *Member) Depth(most uint16) uint16 {
	if most == 0 {
		most = math.MaxUint16
	}
	if m != nil && m.MaxDepth > 0 {
		most = min(most, m.MaxDepth)
	}
	return most
}

// Follows reports whether what a page of the seed, which may be nil, leads to is followed: links of pages, or what
// sitemaps and feeds list.
func (m *Member) Follows(links bool) bool {
	return m == nil || m.Links == "" || m.Links == LinksAll || m.Links == LinksSitemap && !links
}

// accepts reports whether a URL passes the expressions of a seed.
func (s *Spec) accepts(u weburl.URL) bool {
	return (len(s.include) == 0 || matchesAny(s.include, u.String())) && !matchesAny(s.exclude, u.String())
}

func matchesAny(expressions []*regexp.Regexp, s string) bool {
	return slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(s) })
}

// Ref says by which seed a URL was reached. The zero value says nothing.
type Ref struct {
	ID      ID
	Outside uint8 // links since the scope of the seed was left
}

// Checked is the Ref of a URL outside of all scopes that is checked and not followed.
var Checked = Ref{Outside: 255}

// Of returns the seed of a URL that was reached by ref; nil: it has none.
func (s *Set) Of(u weburl.URL, ref Ref) *Member {
	if m := s.Home(u); m != nil {
		return m
	}
	return s.far.get(ref.ID)
}

// Has reports whether a URL that was reached by ref is in the scope of a seed.
func (s *Set) Has(u weburl.URL, ref Ref) bool {
	if s.Home(u) != nil {
		return true
	}
	if ref.ID == (ID{}) {
		return s.mode == ModeAny
	}
	m := s.far.get(ref.ID)
	return m != nil && (m.Mode == ModeAny || ref.Outside <= m.Hops) && m.accepts(u)
}

// IsFar reports whether links may lead out of the scope of a seed.
func (s *Set) IsFar() bool { return s.mode == ModeAny || !s.far.isEmpty() }

// HasOrigin reports whether a seed with ModePrefix is of an origin.
func (s *Set) HasOrigin(origin string) bool { return s.origins.get(origin) > 0 }

// Link returns by which seed a URL is reached that was found on a page. from is the seed of that page, which may be
// nil, and ref how the page was reached itself.
func (s *Set) Link(from *Member, ref Ref, u weburl.URL) Ref {
	if m := s.Home(u); m != nil {
		if m.Mode == ModeAny {
			return Ref{ID: m.ID}
		}
		return Ref{}
	}
	switch {
	case from == nil:
		return Ref{}
	case from.Mode == ModeAny:
		return Ref{ID: from.ID}
	case from.ID != ref.ID: // the page is in the scope of its seed
		return Ref{from.ID, 1}
	case ref.Outside == 255:
		return ref
	}
	return Ref{from.ID, ref.Outside + 1}
}

// Widens reports whether where a redirect of a seed led is part of that seed, and not known as such: it is in the scope
// of no seed, but for where other redirects led.
func (s *Set) Widens(of *Member, target weburl.URL) bool {
	if of == nil {
		return false
	}
	if m := s.Home(target); m != nil && m.Root == m.URL {
		return false
	}
	m := s.Get(target)
	return m == nil || of.Root.String() < m.Root.String()
}

// Targets returns where redirects of a seed led, and no seed before it by URL.
func (s *Set) Targets(of weburl.URL) (all []weburl.URL) {
	for _, t := range s.targets.get(IDOf(of)) {
		if m := s.Get(t.URL); m != nil && m.Root == of && m.URL != of {
			all = append(all, t.URL)
		}
	}
	return all
}

// BareOf returns the seeds of an origin that were given as hosts.
func (s *Set) BareOf(origin weburl.Origin) (all []Seed) {
	if p := s.hosts.get(origin.Host); p != nil {
		for _, m := range p.all {
			if m.Bare && m.Root == m.URL && m.URL.Origin() == origin {
				all = append(all, m.Seed())
			}
		}
	}
	return all
}

// Parts is how many parts a set has. A seed stays in its part as long as With keeps it.
const Parts = tableParts

// All returns all seeds, in no order.
func (s *Set) All() iter.Seq[*Member] { return s.In(0, Parts) }

// In returns the seeds of the parts from one up to another.
func (s *Set) In(from, to int) iter.Seq[*Member] {
	return func(yield func(*Member) bool) {
		for _, part := range s.hosts.parts[from:to] {
			for _, p := range part {
				for _, m := range p.all {
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

// maxNamedTags is how many tags Tags returns.
const maxNamedTags = 100

// Tags returns the first tags of all seeds, sorted.
func (s *Set) Tags() []string {
	tags := make(map[string]bool)
	for m := range s.All() {
		for _, tag := range m.Tags {
			tags[tag] = true
		}
	}
	all := slices.Sorted(maps.Keys(tags))
	return all[:min(len(all), maxNamedTags)]
}
