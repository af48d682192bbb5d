package frontier

import (
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// A budget is the number of pages that may be fetched from a host, or from all hosts of a
// registrable domain, over all runs. The committed outcomes say what was fetched. A page in flight
// counts as fetched until its outcome says that it was not. So a budget is never exceeded, and a
// restart changes nothing.

// domain is the budget of a registrable domain.
type domain struct {
	fetched    uint32
	overBudget []*host // hosts that wait for room in the budget
}

// maxRevived is how many hosts are scheduled again when there is room for one more page in the
// budget of their domain. Sweep schedules all of them.
const maxRevived = 64

// addToDomain adds a host to its registrable domain, with the number of pages fetched from it.
func (f *Frontier) addToDomain(h *host, name string, fetched uint32) {
	if f.o.DomainBudget == 0 || h.domain != 0 {
		return
	}
	key := weburl.RegistrableDomain(name)
	i, known := f.domainIDs[key]
	if !known {
		i = uint32(len(f.domains))
		f.domains = append(f.domains, domain{})
		f.domainIDs[key] = i
	}
	h.domain = i
	f.domains[i].fetched += fetched
}

// budgetLeft is how many more pages of a host may be fetched.
func (f *Frontier) budgetLeft(h *host) uint32 {
	left := ^uint32(0)
	if budget := f.budget(h); budget > 0 {
		left = budget - min(budget, h.fetched)
	}
	if budget := f.o.DomainBudget; budget > 0 && h.domain != 0 {
		left = min(left, budget-min(budget, f.domains[h.domain].fetched))
	}
	return left
}

// isOverBudget reports whether no more pages of a host may be fetched, or it has its limit of
// completed URLs.
func (f *Frontier) isOverBudget(h *host) bool { return f.budgetLeft(h) == 0 || f.hasCompleted(h) }

// withinBudget is how many of n pages of a host its budgets allow.
func (f *Frontier) withinBudget(h *host, n int) int { return min(n, int(f.budgetLeft(h))) }

// countPage counts a page that is about to be fetched. One that was fetched before is counted
// already.
func (f *Frontier) countPage(h *host, head *storage.Head) {
	if head.Last.State != storage.Fetched {
		h.fetched++
		f.domains[h.domain].fetched++
	}
}

// uncountPage takes back the count of a page that was not fetched.
func (f *Frontier) uncountPage(h *host, became storage.State, now instant) {
	if became == storage.Fetched {
		return
	}
	h.fetched--
	f.domains[h.domain].fetched--
	f.reviveDomain(h.domain, maxRevived, now)
}

// setOverBudget sets a dormant host aside until there is room in its budget.
func (f *Frontier) setOverBudget(h *host) {
	h.state = overBudget
	if h.domain != 0 && !h.marks.has(inOverBudget) {
		h.marks.set(inOverBudget, true)
		d := &f.domains[h.domain]
		d.overBudget = append(d.overBudget, h)
	}
}

// reviveDomain schedules hosts of a domain again if there is room in its budget.
func (f *Frontier) reviveDomain(index uint32, most int, now instant) {
	d := &f.domains[index]
	if index == 0 || len(d.overBudget) == 0 || d.fetched >= f.o.DomainBudget {
		return
	}
	hosts := d.overBudget[:min(most, len(d.overBudget))]
	d.overBudget = d.overBudget[len(hosts):]
	for i, h := range hosts {
		hosts[i] = nil
		h.marks.set(inOverBudget, false)
		if h.state == overBudget {
			f.schedule(h, now)
		}
	}
}

// completedLimit is the number of completed URLs of a host after which nothing of it is fetched.
type completedLimit struct {
	limit     uint64
	completed uint32 // as of the last commit
}

// SetLimit limits how many URLs of a host are completed, which means neither queued nor retrying:
// when there are that many, no URL of it is leased. completed are those that there are now. A limit
// of 0 is none.
func (f *Frontier) SetLimit(id storage.HostID, limit uint64, completed uint32, now time.Time) {
	f.readClock(now)
	if limit == 0 {
		delete(f.completedLimits, id)
	} else {
		f.completedLimits[id] = &completedLimit{limit, completed}
	}
	if h := f.hosts.get(id); h != nil {
		f.schedule(h, f.instant(now))
	}
}

// hasCompleted reports whether as many URLs of a host are completed as may be.
func (f *Frontier) hasCompleted(h *host) bool {
	if len(f.completedLimits) == 0 {
		return false
	}
	l := f.completedLimits[h.id]
	return l != nil && uint64(l.completed) >= l.limit
}

// hostCounts counts the hosts with URLs.
type hostCounts struct{ withURLs, withWork int }

// count takes note of whether a host has URLs, and whether some of them are queued or retrying.
func (c *hostCounts) count(h *host, urls, work bool) {
	c.withURLs += h.marks.set(hasURLs, urls)
	c.withWork += h.marks.set(hasWork, work)
}

// HostsWithURLs returns how many hosts have URLs, and how many have some that are queued or retrying,
// as of the last commit.
func (f *Frontier) HostsWithURLs() (all, withWork int) { return f.counts.withURLs, f.counts.withWork }
