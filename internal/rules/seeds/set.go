package seeds

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Member is a seed in force.
type Member struct {
	URL      weburl.URL
	Root     weburl.URL // the seed that it is, or whose redirect led to it
	ID       ID         // of Root
	Source   string     // as that of Seed
	Settings bool       // as that of Seed
	*Spec
}

// Seed returns the member as it was given; of where a redirect led, without fields.
func (m *Member) Seed() Seed {
	s := Seed{URL: m.URL, Source: m.Source, Settings: m.Settings}
	if m.Root != m.URL {
		s.Of = m.Root
	} else {
		s.Bare, s.Fields = m.Bare, *m.Fields
	}
	return s
}

// Set is the seeds in force. It is immutable, so any goroutine may use it; With returns another one.
type Set struct {
	mode    Mode // of seeds that do not say otherwise
	hosts   table[string, *place]
	domains table[string, *place] // of seeds with ModeDomain
	far     table[ID, *Member]    // those from which links lead out of their scope, and of ModeAny
	origins table[string, int]    // seeds with ModePrefix by origin
	targets table[ID, []Seed]     // where redirects of a seed led
	plain   *Spec
	seeds   int
	limited int    // seeds with MaxPages
	timed   int    // seeds with Recrawl
	sum     uint64 // of all seeds, in any order
}

// place is the seeds of a host or of a domain.
type place struct {
	all     []*Member            // by URL
	folders map[string][]*Member // by folder; nil: there are few
	wide    []*Member            // without ModePrefix, the first of those that say the same; nil: there are few
}

// NewSet returns the set without seeds. mode is that of seeds that do not say otherwise.
func NewSet(mode Mode) *Set {
	plain := new(Fields)
	return &Set{
		mode: mode, hosts: newTable[string, *place](), domains: newTable[string, *place](),
		far: newTable[ID, *Member](), origins: newTable[string, int](), targets: newTable[ID, []Seed](),
		plain: &Spec{Mode: mode, Fields: plain},
	}
}

// Len returns the number of seeds, with where their redirects led.
func (s *Set) Len() int { return s.seeds }

// Mode returns the mode of seeds that do not say otherwise.
func (s *Set) Mode() Mode { return s.mode }

// Sum returns a sum of all seeds: equal sets have equal sums, in each process.
func (s *Set) Sum() uint64 { return s.sum }

// LimitsPages reports whether a seed has a limit of pages.
func (s *Set) LimitsPages() bool { return s.limited > 0 }

// SetsRecrawls reports whether a seed says how often its pages are fetched again.
func (s *Set) SetsRecrawls() bool { return s.timed > 0 }

// With returns the set with more seeds, and without some; a seed that is in add replaces the one with its URL. Where
// redirects of a removed seed led goes with it.
func (s *Set) With(add []Seed, remove ...weburl.URL) *Set {
	c := change{Set: *s, specs: make(map[string]*Spec), touched: make(map[*place]bool)}
	c.hosts, c.domains, c.far = s.hosts.draft(), s.domains.draft(), s.far.draft()
	c.origins, c.targets = s.origins.draft(), s.targets.draft()
	for _, u := range remove {
		c.dropTargets(u)
		c.remove(u)
	}
	var later []*Seed
	for i, s := range byURL(add) {
		Yield(i)
		if !s.Of.IsZero() {
			later = append(later, s)
			continue
		}
		c.add(s, IDOf(s.URL), c.spec(s))
	}
	for _, s := range later {
		c.addTarget(s)
	}
	for p := range c.touched {
		p.index()
	}
	c.hosts.freeze()
	c.domains.freeze()
	c.far.freeze()
	c.origins.freeze()
	c.targets.freeze()
	return &c.Set
}

// Yield lets other goroutines run before one seed of 64, the i-th of a list: thousands take tens of milliseconds, in
// which requests begin.
func Yield(i int) {
	if i%64 == 0 {
		runtime.Gosched()
	}
}

// byURL returns seeds in the order of their URLs.
func byURL(all []Seed) []*Seed {
	order := make([]*Seed, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortFunc(order, func(a, b *Seed) int { return strings.Compare(a.URL.String(), b.URL.String()) })
	return order
}

// change is a Set that is being made out of another one.
type change struct {
	Set
	specs   map[string]*Spec // by what they say
	touched map[*place]bool  // places that are of this set alone
}

// spec returns what a seed says, shared with others that say the same.
func (c *change) spec(s *Seed) *Spec {
	if !s.Bare && s.Priority == 0 && s.Fields.IsZero() {
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
			spec.Bare, spec.text = s.Bare, string(key)
		}
		c.specs[string(key)] = spec
	}
	return spec
}

// addTarget adds where a redirect of a seed led: it belongs to that seed, and says what that says. If redirects of
// several seeds led there, the first one by URL counts, whichever was fetched first.
func (c *change) addTarget(s *Seed) {
	of := c.Get(s.Of)
	if of == nil { // it was removed meanwhile
		return
	}
	id := of.ID
	if m := c.Get(s.URL); m != nil && (m.Root == m.URL || m.Root.String() < s.Of.String()) {
		return // it is a seed itself, or one of another seed
	}
	list := c.targets.get(id)
	if !slices.ContainsFunc(list, func(t Seed) bool { return t.URL == s.URL }) {
		if len(list) >= maxTargets {
			return
		}
		c.targets.set(id, append(slices.Clip(list), *s))
	}
	c.add(s, id, of.Spec)
}

func (c *change) dropTargets(of weburl.URL) {
	for _, u := range c.Targets(of) {
		c.remove(u)
	}
	c.targets.delete(IDOf(of))
}

func (c *change) add(s *Seed, id ID, spec *Spec) {
	c.remove(s.URL)
	m := &Member{URL: s.URL, Root: s.URL, ID: id, Source: s.Source, Settings: s.Settings, Spec: spec}
	if !s.Of.IsZero() {
		m.Root = s.Of
	}
	c.own(&c.hosts, s.URL.Host()).insert(m)
	switch spec.Mode {
	case ModeDomain:
		c.own(&c.domains, weburl.RegistrableDomain(s.URL.Host())).insert(m)
	case ModePrefix:
		origin := s.URL.Origin().String()
		c.origins.set(origin, c.origins.get(origin)+1)
	}
	if first := c.far.get(id); s.Of.IsZero() && (spec.Mode == ModeAny || spec.Hops > 0) &&
		(first == nil || m.URL.String() < first.URL.String()) {
		c.far.set(id, m)
	}
	c.seeds++
	if m.MaxPages > 0 {
		c.limited++
	}
	if m.Recrawl != 0 {
		c.timed++
	}
	c.sum += m.sum()
	for _, t := range c.targets.get(id) { // they say what it says
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
	c.take(&c.hosts, u.Host(), m)
	switch m.Mode {
	case ModeDomain:
		c.take(&c.domains, weburl.RegistrableDomain(u.Host()), m)
	case ModePrefix:
		origin := u.Origin().String()
		c.origins.set(origin, c.origins.get(origin)-1)
	}
	if c.far.get(m.ID) == m {
		c.far.delete(m.ID)
	}
	c.seeds--
	if m.MaxPages > 0 {
		c.limited--
	}
	if m.Recrawl != 0 {
		c.timed--
	}
	c.sum -= m.sum()
}

// own returns a place that this change may write to.
func (c *change) own(in *table[string, *place], name string) *place {
	p := in.get(name)
	if p == nil || !c.touched[p] {
		fresh := new(place)
		if p != nil {
			fresh.all = slices.Clone(p.all)
		}
		p = fresh
		in.set(name, p)
		c.touched[p] = true
	}
	return p
}

func (c *change) take(in *table[string, *place], name string, m *Member) {
	p := c.own(in, name)
	i, _ := slices.BinarySearchFunc(p.all, m.URL.String(), compareURL)
	p.all = slices.Delete(p.all, i, i+1)
	if len(p.all) == 0 {
		in.delete(name)
	}
}

func compareURL(m *Member, url string) int { return strings.Compare(m.URL.String(), url) }

func (p *place) insert(m *Member) {
	i, _ := slices.BinarySearchFunc(p.all, m.URL.String(), compareURL)
	p.all = slices.Insert(p.all, i, m)
}

// maxTargets bounds where the redirects of one seed led, in case that they lead elsewhere each time.
const maxTargets = 100

// manySeeds is how many seeds of a host are found by their folders.
const manySeeds = 4

func (p *place) index() {
	if p.folders, p.wide = nil, nil; len(p.all) < manySeeds {
		return
	}
	p.folders = make(map[string][]*Member)
	same := make(map[string]bool)
	for _, m := range p.all {
		f := folder(m.URL.String())
		p.folders[f] = append(p.folders[f], m)
		if m.Mode != ModePrefix && !same[m.text] {
			same[m.text] = true
			p.wide = append(p.wide, m)
		}
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
	for _, text := range [...]string{m.URL.String(), "\x00", string(m.ID[:]), m.text} {
		_, _ = io.WriteString(h, text) // it never fails
	}
	return h.Sum64()
}
