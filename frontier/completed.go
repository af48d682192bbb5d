package frontier

import (
	"time"

	"github.com/amble-crawler/amble/storage"
)

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
