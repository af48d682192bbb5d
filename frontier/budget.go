package frontier

import (
	"math"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// A budget is the number of pages that may be fetched from a host, or from all hosts of a
// registrable domain, over all runs. The committed outcomes say what was fetched. A page in flight
// counts as fetched until its outcome says that it was not. So a budget is never exceeded, and a
// restart changes nothing. Requisites do not count, and are fetched when the budget is spent.

// domain is the budget of a registrable domain.
type domain struct {
	fetched    uint32
	overBudget []*host // hosts that wait for room in the budget
}

// budgets counts the pages of hosts and domains against their budgets.
type budgets struct {
	*base
	domains   []domain          // the first one stands for none
	ids       map[string]uint32 // index in domains by registrable domain
	completed map[storage.HostID]*completedLimit
	// requisites are how many of a host wait, as of the last commit; most hosts have none.
	requisites map[storage.HostID]uint32
	counts     hostCounts
}

// maxRevived is how many hosts are scheduled again when there is room for one more page in the
// budget of their domain. Sweep schedules all of them.
const maxRevived = 64

// setName sets what depends on a host's name: its override and its domain.
func (b *budgets) setName(h *host, name string, fetched uint32) {
	h.override = b.overrides.find(name)
	b.addToDomain(h, name, fetched)
}

// addToDomain adds a host to its registrable domain, with the number of pages fetched from it.
func (b *budgets) addToDomain(h *host, name string, fetched uint32) {
	if b.o.DomainBudget == 0 || h.domain != 0 {
		return
	}
	key := weburl.RegistrableDomain(name)
	i, known := b.ids[key]
	if !known {
		i = uint32(len(b.domains))
		b.domains = append(b.domains, domain{})
		b.ids[key] = i
	}
	h.domain = i
	b.domains[i].fetched += fetched
}

// left is how many more pages of a host may be fetched.
func (b *budgets) left(h *host) uint32 {
	left := ^uint32(0)
	if budget := b.budget(h); budget > 0 {
		left = budget - min(budget, h.fetched)
	}
	if budget := b.o.DomainBudget; budget > 0 && h.domain != 0 {
		left = min(left, budget-min(budget, b.domains[h.domain].fetched))
	}
	return left
}

// isOver reports whether no more pages of a host may be fetched, and none of what they are made of waits, or
// it has its limit of completed URLs. With OnlyJobs no host may have any.
func (b *budgets) isOver(h *host) bool {
	return b.o.OnlyJobs || b.left(h) == 0 && b.requisites[h.id] == 0 || b.hasCompleted(h)
}

// leastPriority is the least that a URL of a host needs: beyond the budget of pages that of a requisite.
func (b *budgets) leastPriority(h *host) int8 {
	if b.left(h) == 0 {
		return storage.PriorityRequisite
	}
	return math.MinInt8
}

// restore takes over a host of the store.
func (b *budgets) restore(h *host, s *storage.Host) {
	b.setRequisites(h.id, s.Waiting())
	b.setName(h, s.Name, h.fetched)
}

// setRequisites sets how many requisites of a host wait.
func (b *budgets) setRequisites(id storage.HostID, waiting uint32) {
	if waiting > 0 {
		b.requisites[id] = waiting
	} else {
		delete(b.requisites, id)
	}
}

// within is how many of n URLs of a host its budgets allow.
func (b *budgets) within(h *host, n int) int {
	requisites := min(n, int(b.requisites[h.id]))
	return requisites + min(n-requisites, int(b.left(h)))
}

// countPage counts a page that is about to be fetched. One that was fetched before is counted already.
func (b *budgets) countPage(h *host, head *storage.Head) {
	if head.Last.State != storage.Fetched && !head.IsRequisite() {
		h.fetched++
		b.domains[h.domain].fetched++
	}
}

// uncountPage takes back the count of a page that was not fetched.
func (s *scheduler) uncountPage(out *outstanding, became storage.State, now instant) {
	h, head := out.host, &out.lease.Head
	s.pages.end(out.pages, became)
	if became == storage.Fetched || head.IsRequisite() {
		return
	}
	s.budgets.uncountSitemap(h, head)
	h.fetched--
	s.budgets.domains[h.domain].fetched--
	s.reviveDomain(h.domain, maxRevived, now)
}

// sitemapShare is the part of a budget of pages that sitemaps may take: one in so many.
const sitemapShare = 4

// countSitemap counts a request for a URL if it is one for a sitemap, and reports whether the host may have it: an
// index may name any number of sitemaps, and those of a host of few pages are to cost it no page. A sitemap that is
// fetched again does not count. A byte has to do for the count: of many sitemaps, one of so many counts, by their
// ordinals, which are in a row.
func (b *budgets) countSitemap(h *host, head *storage.Head) bool {
	if !head.Sitemap || head.Last.State == storage.Fetched || b.o.MaxSitemaps == 0 {
		return true
	}
	most, unit := b.sitemaps(h)
	if uint32(h.sitemaps)*unit >= most {
		return false
	}
	if head.Ordinal%unit == 0 {
		h.sitemaps++
	}
	return true
}

// uncountSitemap takes back the count of a sitemap that was not fetched.
func (b *budgets) uncountSitemap(h *host, head *storage.Head) {
	if _, unit := b.sitemaps(h); head.Sitemap && head.Last.State != storage.Fetched && head.Ordinal%unit == 0 {
		h.sitemaps -= min(h.sitemaps, 1)
	}
}

// sitemaps returns how many sitemaps a host may have, and how many count as one.
func (b *budgets) sitemaps(h *host) (most, unit uint32) {
	most = uint32(b.o.MaxSitemaps)
	if budget := b.budget(h); budget > 0 {
		most = min(most, max(budget/sitemapShare, 1))
	}
	return most, most/math.MaxUint8 + 1
}

// setOverBudget sets a dormant host aside until there is room in its budget.
func (b *budgets) setOverBudget(h *host) {
	h.state = overBudget
	if h.domain != 0 && !h.marks.has(inOverBudget) {
		h.marks.set(inOverBudget, true)
		d := &b.domains[h.domain]
		d.overBudget = append(d.overBudget, h)
	}
}

// reviveDomain schedules hosts of a domain again if there is room in its budget.
func (s *scheduler) reviveDomain(index uint32, most int, now instant) {
	d := &s.budgets.domains[index]
	if index == 0 || len(d.overBudget) == 0 || d.fetched >= s.o.DomainBudget {
		return
	}
	hosts := d.overBudget[:min(most, len(d.overBudget))]
	d.overBudget = d.overBudget[len(hosts):]
	for i, h := range hosts {
		hosts[i] = nil
		h.marks.set(inOverBudget, false)
		if h.state == overBudget {
			s.schedule(h, now)
		}
	}
}

// completedLimit is the number of completed URLs of a host after which nothing of it is fetched.
type completedLimit struct {
	limit     uint64
	completed uint32 // as of the last commit
}

// hasCompleted reports whether as many URLs of a host are completed as may be.
func (b *budgets) hasCompleted(h *host) bool {
	if len(b.completed) == 0 {
		return false
	}
	l := b.completed[h.id]
	return l != nil && uint64(l.completed) >= l.limit
}

// hostCounts counts the hosts with URLs.
type hostCounts struct{ withURLs, withWork int }

// count takes note of whether a host has URLs, and whether some of them are queued or retrying.
func (c *hostCounts) count(h *host, urls, work bool) {
	c.withURLs += h.marks.set(hasURLs, urls)
	c.withWork += h.marks.set(hasWork, work)
}
