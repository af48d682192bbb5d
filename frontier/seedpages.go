package frontier

import (
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// A seed with max_pages has a budget of pages too. Nothing else in the store says how many pages of a seed were
// fetched, so a mark does, which changes in the transaction with their outcomes. A page in flight counts until its
// outcome says that it was not fetched: the budget is never exceeded.

// MarkSeedPages begins the name of a mark with the pages of a seed that were fetched, in decimal. The URL of the seed
// follows.
const MarkSeedPages = "seedpages/"

// seedPages counts the pages of the seeds that have a limit.
type seedPages struct {
	*base
	of    map[seeds.ID]*pagesOf
	batch *storage.Batch // where changes of the marks go
}

// pagesOf is the pages of a seed.
type pagesOf struct {
	seed              weburl.URL
	fetched, inFlight uint32
}

// newSeedPages goes on counting where marks say.
func newSeedPages(b *base, batch *storage.Batch) *seedPages {
	s := &seedPages{b, make(map[seeds.ID]*pagesOf), batch}
	for name, value := range b.o.SeedPages {
		u, err := weburl.Parse(strings.TrimPrefix(name, MarkSeedPages))
		n, err2 := strconv.ParseUint(string(value), 10, 32)
		if err == nil && err2 == nil {
			s.of[seeds.IDOf(u)] = &pagesOf{seed: u, fetched: uint32(n)}
		}
	}
	s.forget(nil)
	return s
}

// forget ends the counts of seeds that have no limit any more. before is the scope that was in force.
func (s *seedPages) forget(before *Scope) {
	if before != nil && before.seeds == s.scope.seeds {
		return
	}
	for id, p := range s.of {
		if m := s.scope.seeds.Get(p.seed); m == nil || m.MaxPages == 0 || m.Root != m.URL {
			delete(s.of, id)
			s.mark(p.seed, nil)
		}
	}
}

func (s *seedPages) mark(seed weburl.URL, value []byte) {
	if s.batch.Marks == nil {
		s.batch.Marks = make(map[string][]byte)
	}
	s.batch.Marks[MarkSeedPages+seed.String()] = value
}

// find returns the pages of the seed of a URL; nil: it has no limit, or the URL does not count.
func (s *seedPages) find(u weburl.URL, head *storage.Head) (p *pagesOf, most uint32) {
	if !s.scope.seeds.LimitsPages() || head.Last.State == storage.Fetched || head.IsRequisite() {
		return nil, 0
	}
	m := s.scope.seeds.Of(u, RefOf(&head.Entry))
	if m == nil || m.MaxPages == 0 {
		return nil, 0
	}
	if p = s.of[m.ID]; p == nil {
		p = &pagesOf{seed: m.Root}
		s.of[m.ID] = p
	}
	return p, m.MaxPages
}

// begin counts a page in flight, and returns what end takes. A sitemap is none.
func (s *seedPages) begin(p *pagesOf, head *storage.Head) *pagesOf {
	if p == nil || head.Sitemap {
		return nil
	}
	p.inFlight++
	return p
}

// end counts a page that was in flight.
func (s *seedPages) end(p *pagesOf, became storage.State) {
	if p == nil {
		return
	}
	if p.inFlight--; became != storage.Fetched {
		return
	}
	p.fetched++
	if s.of[seeds.IDOf(p.seed)] == p { // else the seed has lost its limit meanwhile
		s.mark(p.seed, strconv.AppendUint(nil, uint64(p.fetched), 10))
	}
}

// seedPagesWait is for how long a queue waits for pages in flight before it is decided again whether its next page may
// be fetched.
const seedPagesWait = instant(time.Second)
