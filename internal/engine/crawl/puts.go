//go:build !core

package crawl

import (
	"fmt"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/storage"
)

// putGroup are puts on their way through the dispatcher into one commit.
type putGroup struct {
	found    []storage.Found
	known    []string          // the texts of those with an outcome, in their order
	indexes  []int             // in the argument of Put
	fetchers []string          // each once
	keys     map[string]putKey // by host
	moved    []queueKey        // of hosts that were in another queue
	bytes    int               // of metadata

	first   int                    // index of its first in the batch
	results []storage.InsertResult // set before done
	done    chan error             // holds one: nil when it is committed
	again   bool                   // it waits for the next commit too
}

// maxPutBytes is how many bytes of metadata of puts may gather for the next commit.
const maxPutBytes = 8 << 20

// putsFrom returns the channel that the next puts come from; nil while enough of them have gathered.
func (b *batching) putsFrom(m *mailbox) <-chan *putGroup {
	if b.pending.size > b.batchSize.Items()*3/4 || b.pending.putBytes > maxPutBytes {
		return nil
	}
	return m.puts
}

// takePuts takes puts into the next commit. The leases of known URLs end, when their hosts are
// loaded.
func (ld *lender) takePuts(g *putGroup) {
	now := ld.o.Now()
	for _, name := range g.fetchers {
		if err := ld.remote.checkFetcher(name, now); err != nil {
			g.done <- err
			return
		}
	}
	for _, url := range g.known {
		if x := ld.remote.OfText(url); x != nil && !x.IsClaimed() {
			if _, loaded := ld.f.LeaseOf(x.FrontierID); !loaded { // an earlier process gave it
				ld.remote.parkedPuts = append(ld.remote.parkedPuts, g)
				return
			}
		}
	}
	ld.runOut(now)
	known := g.known
	for i := range g.found {
		o := g.found[i].Outcome
		if o == nil {
			continue
		}
		o.At = now
		ld.f.BeginPut(known[0])
		if x := ld.remote.OfText(known[0]); x != nil {
			ld.endByPut(x, known[0], o.State, now)
		}
		known = known[1:]
	}
	ld.fail(ld.remote.keys.setGroup(g, ld.pending))
	ld.collect()
	b := ld.pending
	g.first = len(b.rows.Found)
	b.rows.Found = append(b.rows.Found, g.found...)
	b.puts = append(b.puts, g)
	b.size += len(g.found)
	b.putBytes += g.bytes
}

// endByPut ends a lease because of a put of its URL, which becomes another state by it. The host is
// charged as for a request without a known result. The put overrides a report that is being
// worked on.
func (ld *lender) endByPut(x *remote.Held, url string, became storage.State, now time.Time) {
	if x.IsClaimed() {
		x.Overridden, x.Became = true, became
		return
	}
	l, _ := ld.f.LeaseOf(x.FrontierID)
	if f := ld.remote.Known(x.Fetcher); f != nil {
		f.Reported++
	}
	res := broken(l, x, x.Began, now)
	ld.endRemote(res)
	ld.logRequest(res, &res.Page.Report)
	if !ld.o.IgnoreRobots || x.Again && now.Unix() == x.Given.Unix() { // else the time of the put says that it ended
		ld.fail(ld.ledger.noteEnd(res))
	}
	if err := ld.f.CompletePut(l.ID, url, became, res.Page.Report); err != nil {
		ld.fail(fmt.Errorf("put %s: %w", url, err))
	}
}

// completeOverridden applies the report of a lease whose URL was put meanwhile: the put decides about
// the URL, and what the page led to counts. is reports whether it was.
func (oc *outcomes) completeOverridden(res *work.Result) (is bool, err error) {
	if res.Remote == nil || !res.Remote.Lease.Overridden {
		return false, nil
	}
	x := res.Remote.Lease
	oc.logRequest(res, &res.Page.Report)
	err = oc.f.CompletePut(res.Lease.ID, x.URL, x.Became, res.Page.Report)
	oc.pending.add(res)
	if res.Committed != nil {
		oc.pending.waiting = append(oc.pending.waiting, res.Committed)
	}
	oc.bodies.Add(res.Lease.URL.String(), res.Payload)
	return true, err
}

// sizeResults makes room for the results of puts.
func (b *batch) sizeResults() {
	if n := len(b.rows.Found); len(b.puts) > 0 && len(b.rows.InsertResults) != n {
		b.rows.InsertResults = make([]storage.InsertResult, n, n+n/4)
	}
}

// answerPuts tells those who have put URLs what became of the commit.
func (b *batch) answerPuts(err error) {
	for _, g := range b.puts {
		if err == nil {
			g.results = b.rows.InsertResults[g.first : g.first+len(g.found)]
		}
		if !g.again {
			g.done <- err
		}
	}
	b.puts = nil
}

// endPuts tells the frontier that the puts of a batch are on disk.
func (oc *outcomes) endPuts(b *batch) {
	for _, g := range b.puts {
		for _, url := range g.known {
			oc.f.EndPut(url)
		}
	}
}

// takeBack ends the leases of URLs of a host that are deleted, in a crawl whose fetchers decide
// everything, and if all of its URLs are deleted its key and what clients have set for it: nothing from
// before the deletion holds back what comes after it. The error is of reading the host.
func (ld *lender) takeBack(id storage.HostID, below uint32) error {
	now := ld.o.Now()
	host, err := ld.store.HostByID(id)
	all := err == nil && below >= host.Tail
	if all {
		ld.fail(ld.setHost(&host, func(q *QueueSettings) { *q = QueueSettings{} }, now))
	}
	for _, x := range ld.remote.OfHost(id) {
		l, loaded := ld.f.LeaseOf(x.FrontierID)
		if !loaded || x.IsClaimed() || x.At.Ordinal >= below {
			continue // it runs out, or its report is being worked on
		}
		res := broken(l, x, x.Began, now)
		res.Page.Report = frontier.Report{End: now}
		ld.complete(res)
	}
	if all {
		_, err = ld.remote.keys.set(queueKey{host.Name, host.Name}, ld.pending)
		ld.f.ForgetRequests(id, host.Name)
	}
	return err
}
