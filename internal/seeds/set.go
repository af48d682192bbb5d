package seeds

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Member is a seed in force.
type Member struct {
	URL  weburl.URL
	Root weburl.URL // the seed that it is, or whose redirect led to it
	ID   ID         // of Root
	*Spec
}

// Set is the seeds in force. It is immutable, so any goroutine may use it; With returns another one.
type Set struct {
	mode    Mode // of seeds that do not say otherwise
	hosts   map[string]*place
	domains map[string]*place // of seeds with ModeDomain
	far     map[ID]*Member    // those from which links lead out of their scope, and of ModeAny
	origins map[string]int    // seeds with ModePrefix by origin
	targets map[ID][]Seed     // where redirects of a seed led
	plain   *Spec
	seeds   int
	sum     uint64 // of all seeds, in any order
}

// place is the seeds of a host or of a domain.
type place struct {
	all     []*Member            // by URL
	folders map[string][]*Member // by folder; nil: there are few
}

// NewSet returns the set without seeds. mode is that of seeds that do not say otherwise.
func NewSet(mode Mode) *Set {
	plain := new(Fields)
	return &Set{
		mode: mode, hosts: map[string]*place{}, domains: map[string]*place{}, far: map[ID]*Member{},
		origins: map[string]int{}, targets: map[ID][]Seed{}, plain: &Spec{Mode: mode, Fields: plain},
	}
}

// Len returns the number of seeds, with where their redirects led.
func (s *Set) Len() int { return s.seeds }

// Mode returns the mode of seeds that do not say otherwise.
func (s *Set) Mode() Mode { return s.mode }

// Sum returns a sum of all seeds: equal sets have equal sums, in each process.
func (s *Set) Sum() uint64 { return s.sum }

// With returns the set with more seeds, and without some; a seed that is in add replaces the one with its URL. Where
// redirects of a removed seed led goes with it.
func (s *Set) With(add []Seed, remove ...weburl.URL) *Set {
	c := change{Set: *s, specs: make(map[string]*Spec), touched: make(map[*place]bool)}
	c.hosts, c.domains, c.far = maps.Clone(s.hosts), maps.Clone(s.domains), maps.Clone(s.far)
	c.origins, c.targets = maps.Clone(s.origins), maps.Clone(s.targets)
	for _, u := range remove {
		c.remove(u)
		c.dropTargets(IDOf(u))
	}
	var later []Seed
	add = slices.SortedFunc(slices.Values(add),
		func(a, b Seed) int { return strings.Compare(a.URL.String(), b.URL.String()) })
	for i := range add {
		if !add[i].Of.IsZero() {
			later = append(later, add[i])
			continue
		}
		c.add(&add[i], IDOf(add[i].URL), c.spec(&add[i]))
	}
	for i := range later {
		c.addTarget(&later[i])
	}
	for p := range c.touched {
		p.index()
	}
	return &c.Set
}

// change is a Set that is being made out of another one.
type change struct {
	Set
	specs   map[string]*Spec // by what they say
	touched map[*place]bool  // places that are of this set alone
}

// spec returns what a seed says, shared with others that say the same.
func (c *change) spec(s *Seed) *Spec {
	if s.Fields.IsZero() && s.Priority == 0 && !s.Bare {
		return c.plain
	}
	key, _ := json.Marshal(&stored{Bare: s.Bare, Fields: s.Fields}) // it can be encoded
	spec := c.specs[string(key)]
	if spec == nil {
		fields := s.Fields
		var err error
		if spec, err = fields.compile(c.mode); err != nil {
			spec = c.plain // nobody gets here: seeds are checked when they are read
		} else {
			spec.Bare = s.Bare
		}
		c.specs[string(key)] = spec
	}
	return spec
}

// addTarget adds where a redirect of a seed led: it belongs to that seed, and says what that says.
func (c *change) addTarget(s *Seed) {
	id, spec := IDOf(s.Of), c.plain
	if of := c.Get(s.Of); of != nil {
		id, spec = of.ID, of.Spec
	}
	if m := c.Get(s.URL); m != nil && m.ID == IDOf(s.URL) {
		return // it is a seed itself
	}
	c.add(s, id, spec)
	if list := c.targets[id]; !slices.ContainsFunc(list, func(t Seed) bool { return t.URL == s.URL }) {
		c.targets[id] = append(slices.Clip(list), *s)
	}
}

func (c *change) dropTargets(id ID) {
	for _, t := range c.targets[id] {
		if m := c.Get(t.URL); m != nil && m.ID == id {
			c.remove(t.URL)
		}
	}
	delete(c.targets, id)
}

func (c *change) add(s *Seed, id ID, spec *Spec) {
	c.remove(s.URL)
	m := &Member{URL: s.URL, Root: s.URL, ID: id, Spec: spec}
	if !s.Of.IsZero() {
		m.Root = s.Of
	}
	c.own(c.hosts, s.URL.Host()).insert(m)
	switch spec.Mode {
	case ModeDomain:
		c.own(c.domains, weburl.RegistrableDomain(s.URL.Host())).insert(m)
	case ModePrefix:
		c.origins[s.URL.Origin().String()]++
	}
	if first := c.far[id]; s.Of.IsZero() && (spec.Mode == ModeAny || spec.Hops > 0) &&
		(first == nil || m.URL.String() < first.URL.String()) {
		c.far[id] = m
	}
	c.seeds++
	c.sum += m.sum()
	for _, t := range c.targets[id] { // they say what it says
		if id == IDOf(s.URL) {
			c.add(&t, id, spec)
		}
	}
}

func (c *change) remove(u weburl.URL) {
	m := c.Get(u)
	if m == nil {
		return
	}
	c.take(c.hosts, u.Host(), m)
	switch m.Mode {
	case ModeDomain:
		c.take(c.domains, weburl.RegistrableDomain(u.Host()), m)
	case ModePrefix:
		origin := u.Origin().String()
		if c.origins[origin]--; c.origins[origin] == 0 {
			delete(c.origins, origin)
		}
	}
	if c.far[m.ID] == m {
		delete(c.far, m.ID)
	}
	c.seeds--
	c.sum -= m.sum()
}

// own returns a place that this change may write to.
func (c *change) own(in map[string]*place, name string) *place {
	p := in[name]
	if p == nil || !c.touched[p] {
		fresh := new(place)
		if p != nil {
			fresh.all = slices.Clone(p.all)
		}
		p, in[name] = fresh, fresh
		c.touched[p] = true
	}
	return p
}

func (c *change) take(in map[string]*place, name string, m *Member) {
	p := c.own(in, name)
	i, _ := slices.BinarySearchFunc(p.all, m.URL.String(), byURL)
	p.all = slices.Delete(p.all, i, i+1)
	if len(p.all) == 0 {
		delete(in, name)
	}
}

func byURL(m *Member, url string) int { return strings.Compare(m.URL.String(), url) }

func (p *place) insert(m *Member) {
	i, _ := slices.BinarySearchFunc(p.all, m.URL.String(), byURL)
	p.all = slices.Insert(p.all, i, m)
}

// manySeeds is how many seeds of a host are found by their folders.
const manySeeds = 4

func (p *place) index() {
	if p.folders = nil; len(p.all) < manySeeds {
		return
	}
	p.folders = make(map[string][]*Member)
	for _, m := range p.all {
		f := folder(m.URL.String())
		p.folders[f] = append(p.folders[f], m)
	}
}

// folder returns a URL up to the last slash of its path.
func folder(url string) string {
	path, _, _ := strings.Cut(url, "?")
	return path[:strings.LastIndexByte(path, '/')+1]
}

// sum is of all that a member decides.
func (m *Member) sum() uint64 {
	h := fnv.New64a()
	text, _ := json.Marshal(m.Fields)                                            // it can be encoded
	_, _ = io.WriteString(h, m.URL.String()+"\x00"+string(m.ID[:])+string(text)) // it never fails
	return h.Sum64()
}
