//go:build !core

package frontier

import (
	"time"

	"github.com/amble-crawler/amble/storage"
)

// A put is a URL about which somebody outside decides: storage.Found with an Outcome. From BeginPut
// until EndPut no lease of the URL is given out, so that nobody fetches it by what the store knew
// before. A lease that is out is ended by CompletePut.

// BeginPut holds a URL until EndPut. It may be called several times for one URL.
func (f *Frontier) BeginPut(url string) {
	p := f.puts.byURL[url]
	if p == nil {
		p = new(putHold)
		f.puts.byURL[url] = p
	}
	p.puts++
}

// EndPut says that a put of a URL is on disk, or given up. Committed follows it.
func (f *Frontier) EndPut(url string) {
	p := f.puts.byURL[url]
	if p == nil {
		return
	}
	if p.puts--; p.puts > 0 {
		return
	}
	delete(f.puts.byURL, url)
	for _, at := range p.taken {
		f.hosts.release(at)
	}
}

// CompletePut ends a Page lease because of a put of its URL, which becomes another state by it. The
// host is charged as for any request that ends at r.End, and the put decides about the URL. The host
// has to be loaded: see LeaseOf. The error is ErrUnknownLease.
func (f *Frontier) CompletePut(id uint64, url string, became storage.State, r Report) error {
	out, err := f.leases.end(id, Page)
	if err != nil {
		return err
	}
	defer f.gate.end(out, &r)
	h, head := out.host, &out.lease.Head
	f.endRequest(out, &r)
	f.lanes.end(out, f.instant(r.End))
	h.active.queues[head.Origin].Done(head.Ordinal)
	if p := f.puts.byURL[url]; p != nil {
		p.taken = append(p.taken, storage.Position{Host: h.id, Ordinal: head.Ordinal})
	} else { // the put is on disk already
		f.hosts.release(storage.Position{Host: h.id, Ordinal: head.Ordinal})
		h.active.dueGrew(0)
	}
	f.uncountPage(out, became, f.instant(f.clock))
	f.results.update(h, f.clock, 1, r.Bytes)
	f.commands.applyDrop(h, f.clock)
	f.schedule(h, f.instant(f.clock))
	return nil
}

// SetLimit limits how many URLs of a host are completed, which means neither queued nor retrying: when there are that
// many, no URL of it is leased. completed are those that there are now. A limit of 0 is none.
func (f *Frontier) SetLimit(id storage.HostID, limit uint64, completed uint32, now time.Time) {
	f.readClock(now)
	if limit == 0 {
		delete(f.budgets.completed, id)
	} else {
		f.budgets.completed[id] = &completedLimit{limit, completed}
	}
	if h := f.hosts.get(id); h != nil {
		f.schedule(h, f.instant(now))
	}
}

// HostsWithURLs returns how many hosts have URLs, and how many have some that are queued or retrying,
// as of the last commit.
func (f *Frontier) HostsWithURLs() (all, withWork int) {
	return f.budgets.counts.withURLs, f.budgets.counts.withWork
}
