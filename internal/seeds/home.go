package seeds

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Get returns the seed with a URL; nil: there is none.
func (s *Set) Get(u weburl.URL) *Member {
	p := s.hosts[u.Host()]
	if p == nil {
		return nil
	}
	if i, found := slices.BinarySearchFunc(p.all, u.String(), byURL); found {
		return p.all[i]
	}
	return nil
}

// Home returns the seed whose scope a URL is in, the nearest one if there are several: the one with this URL, then by
// the longest common folder, then another one of the host, then of the domain; of equal ones the first by URL. Nil: it
// is in the scope of none.
func (s *Set) Home(u weburl.URL) *Member {
	if p := s.hosts[u.Host()]; p != nil {
		if m := p.home(u); m != nil {
			return m
		}
	}
	if len(s.domains) == 0 {
		return nil
	}
	if p := s.domains[weburl.RegistrableDomain(u.Host())]; p != nil {
		for _, m := range p.all {
			if m.accepts(u) {
				return m
			}
		}
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
	if i, found := slices.BinarySearchFunc(p.all, text, byURL); found && p.all[i].accepts(u) {
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
		for _, m := range p.folders[path[:end]] {
			if m.accepts(u) {
				return m
			}
		}
	}
	for _, m := range p.all {
		if m.Mode != ModePrefix && m.accepts(u) {
			return m
		}
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

// Of returns the seed of a URL that was reached by ref; nil: it has none.
func (s *Set) Of(u weburl.URL, ref Ref) *Member {
	if m := s.Home(u); m != nil {
		return m
	}
	return s.far[ref.ID]
}

// Has reports whether a URL that was reached by ref is in the scope of a seed.
func (s *Set) Has(u weburl.URL, ref Ref) bool {
	if s.Home(u) != nil {
		return true
	}
	if ref.ID == (ID{}) {
		return s.mode == ModeAny
	}
	m := s.far[ref.ID]
	return m != nil && (m.Mode == ModeAny || ref.Outside <= m.Hops) && m.accepts(u)
}

// IsFar reports whether links may lead out of the scope of a seed.
func (s *Set) IsFar() bool { return s.mode == ModeAny || len(s.far) > 0 }

// HasOrigin reports whether a seed with ModePrefix is of an origin.
func (s *Set) HasOrigin(origin string) bool { return s.origins[origin] > 0 }

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

// Targets returns where redirects of a seed led.
func (s *Set) Targets(of weburl.URL) []Seed { return s.targets[IDOf(of)] }

// Each calls f for each seed, in no order.
func (s *Set) Each(f func(*Member)) {
	for _, p := range s.hosts {
		for _, m := range p.all {
			f(m)
		}
	}
}
