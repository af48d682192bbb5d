//go:build !core

package crawl

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

const (
	// robotsWorkers is how many workers there may be besides Live.Workers for what the pages of
	// fetchers wait for: robots.txt files, and long matches.
	robotsWorkers = 64
	// maxLeases bounds the remote leases that are out. Each takes about 1 KB.
	maxLeases = 200_000
	// maxWaiters bounds the requests that wait for leases.
	maxWaiters = 1024
)

// remoteLeases are the page leases that fetchers have, and those who wait for some. The dispatcher owns them.
type remoteLeases struct {
	*remote.Book
	keys     queueKeys    // of queues of hosts
	inactive *atomic.Bool // clients let no leases be given
	waiters  []*leaseWait
	wake     time.Time // when there may be a lease for a waiter; zero: only an event can change that
	parked   []*claims // wait until the hosts of adopted leases are loaded
	// outputLost encodes the output of a URL whose lease has run out.
	outputLost func(*work.Result)
	// parkedPuts wait for the same.
	parkedPuts []*putGroup
}

// lendings are for fetchers outside of the process. Any goroutine may call its methods.
type lendings struct {
	views
	lender   atomic.Pointer[workers] // of the Run; nil: none has begun
	inactive atomic.Bool             // clients let no leases be given
}

// Fetcher is what is known of a remote fetcher.
type Fetcher = remote.Fetcher

// beginLending lets fetchers have leases: their reports are worked on as a worker does.
func beginLending(e *Engine, w *workers) { e.lender.Store(w) }

// wireLending gives a dispatcher without leases what it needs to lend pages.
func wireLending(e *Engine, d *dispatcher, w *workers) {
	d.remote = remoteLeases{
		Book: remote.New(), inactive: &e.inactive, outputLost: w.OutputLost,
		keys: queueKeys{store: e.store, any: &e.keyIndex.any, changed: make(map[string]string)},
	}
}

// next is when the next lease runs out, or there may be one for a waiter; zero: only an event can change that.
func (r *remoteLeases) next(paused bool) time.Time {
	if paused {
		return r.NextDeadline()
	}
	return earliest(r.NextDeadline(), r.wake)
}

// abandon tells the gate of the leases whose ends this process will not see.
func (r *remoteLeases) abandon(f *frontier.Frontier) {
	for x := range r.All() {
		f.Abandon(x.FrontierID, x.Ends)
	}
}

// isWanted reports whether somebody waits for leases, or has a report worked on.
func (r *remoteLeases) isWanted() bool { return len(r.waiters)+len(r.parked)+r.Working() > 0 }

// lender lends URLs to fetchers outside of the process, and takes what they report and put.
type lender struct{ outcomes }

// lentPage is a lease on its way to a fetcher.
type lentPage struct {
	lease  frontier.Lease
	remote *remote.Held
}

// leaseWait is a request for leases.
type leaseWait struct {
	request remote.Request
	host    storage.HostID
	given   []*lentPage   // set before done is closed, as is err
	err     error         //
	done    chan struct{} // closed by the dispatcher when it is through with the request
	// lastChance says that the request ends when the queues are read that were being read at its mark.
	lastChance bool
	mark       uint64
}

// loadTimeout is for how long a request that is to end waits for queues that are being read. It bounds
// what a disk that hangs can do.
const loadTimeout = 10 * time.Second

// refuseAll ends all that waits for leases, and the reports that wait for hosts to be loaded.
func (r *remoteLeases) refuseAll() {
	for _, w := range r.waiters {
		w.err = ErrNotRunning
		close(w.done)
	}
	for _, c := range r.parked {
		c.err = ErrNotRunning
		close(c.done)
	}
	for _, g := range r.parkedPuts {
		g.done <- ErrNotRunning
	}
	r.waiters, r.parked, r.parkedPuts = nil, nil, nil
}

// lendPages gives leases to those who wait for some.
func (ld *lender) lendPages() {
	r := &ld.remote
	if !ld.isPaused() && ld.f.Prepare(ld.o.Now()) {
		ld.collect()
	}
	if r.wake = (time.Time{}); len(r.waiters) == 0 {
		return
	}
	r.waiters = slices.DeleteFunc(r.waiters, func(w *leaseWait) bool {
		ended := ld.lend(w) || w.lastChance && ld.loads.HaveCome(w.mark, w.host)
		if ended {
			close(w.done)
		}
		return ended
	})
}

// canLend reports whether another lease may be given out. The caller holds the lock of the quota.
func (pm *permits) canLend(now time.Time) bool {
	if pm.isPaused() || pm.remote.inactive.Load() || pm.remote.Len() >= maxLeases {
		return false
	}
	ok, next := pm.quota.AdmitsBeyond(robotsWorkers, now)
	pm.remote.wake = earliest(pm.remote.wake, next)
	return ok
}

// lend gives leases to one who waits for some. It reports whether there were any.
func (ld *lender) lend(w *leaseWait) bool {
	now := ld.o.Now()
	ld.runOut(now)
	ld.mayBegin()
	ld.takeOptOuts()
	ld.quota.Lock()
	defer ld.quota.Unlock()
	if !ld.canLend(now) {
		return false
	}
	ld.requests.Flush() // as in depart
	want := frontier.Want{Host: w.host, PerHost: w.request.PerHost, Hosts: w.request.Hosts}
	wake := ld.f.LeaseRemote(now, want, func(l *frontier.Lease) bool {
		if l.Kind != frontier.Page {
			return ld.serveInside(*l, now) && ld.canLend(now)
		}
		given, err := ld.give(*l, &w.request, now)
		if err != nil {
			ld.notSent(l, now)
			ld.fail(ld.stall.StartFailed(err, now))
			return false
		}
		w.given = append(w.given, given)
		return len(w.given) < w.request.N && ld.canLend(now)
	})
	ld.remote.wake = earliest(ld.remote.wake, wake)
	ld.collect()
	return len(w.given) > 0
}

// serveInside gives a lease that a page of a fetcher waits for to a worker.
func (ld *lender) serveInside(l frontier.Lease, now time.Time) bool {
	ld.quota.Begin()
	ld.quota.Took(&l, now)
	ld.enter(&l, now)
	return ld.depart(now)
}

// give makes a remote lease of a page lease, and writes it to the start ledger.
func (ld *lender) give(l frontier.Lease, to *remote.Request, now time.Time) (*lentPage, error) {
	x := &remote.Held{
		FrontierID: l.ID, At: storage.Position{Host: l.Host, Ordinal: l.Head.Ordinal}, Began: now,
		Ends: now.Add(to.Visibility),
		Record: remote.Record{
			ID: rand.Text(), Fetcher: to.Fetcher, URL: l.URL.String(), Given: now.Round(0),
			Deadline: now.Add(to.Visibility).Round(0),
			Delay:    l.Delay, Line: l.Verdict.Line, Again: l.Head.Last.At.Unix() == now.Unix(),
		},
	}
	if l.Address.IsValid() {
		x.Address = l.Address.String()
	}
	if l.Rules != nil && !l.Rules.Version().IsZero() {
		x.Version = l.Rules.Version().String()
	}
	key, err := ld.remote.keys.of(l.HostName)
	if err != nil {
		return nil, err
	}
	x.Key = key
	offset, err := ld.ledger.lend(&l, x)
	if err != nil {
		return nil, err
	}
	ld.stall.Started()
	ld.quota.Took(&l, now)
	ld.remote.Enter(x, offset)
	ld.remote.Known(x.Fetcher).Taken++
	ld.flights.pages++
	return &lentPage{l, x}, nil
}

// noteEnd writes that a lease has ended, after the request log has its request. One with a report has its line.
// Without room for the line it may count as out until its deadline.
func (s startLedger) noteEnd(res *work.Result) error {
	x := res.Remote.Lease
	if x.IsClaimed() {
		return nil
	}
	_, err := s.note(remote.NoteEnd, &res.Lease, x)
	if errors.Is(err, storage.ErrNoSpace) {
		return nil
	}
	return err
}

// endRemote takes a lease back that has ended. Its request belongs to the line that says so, which note writes when
// all else is done.
func (oc *outcomes) endRemote(res *work.Result) (note func()) {
	x := res.Remote.Lease
	if res.Offset = x.EndLine; res.Offset == 0 {
		res.Offset = oc.ledger.Offset()
	}
	if x.IsMarked() {
		oc.pending.setMark(remote.Mark+x.ID, nil)
	}
	oc.remote.End(x)
	oc.flights.pages--
	return func() { oc.fail(oc.ledger.noteEnd(res)) }
}

// runOut ends the leases whose deadline has passed: the host is charged as for a broken request, and
// the URL goes back to its queue.
func (ld *lender) runOut(now time.Time) {
	for x := ld.remote.Over(now); x != nil; x = ld.remote.Over(now) {
		l, loaded := ld.f.LeaseOf(x.FrontierID)
		if !loaded { // its host is being read
			ld.remote.Postpone(x, now.Add(time.Second))
			continue
		}
		if f := ld.remote.Known(x.Fetcher); f != nil {
			f.RanOut++
		}
		ld.log.Debug("a lease has run out", "url", x.URL, "fetcher", x.Fetcher)
		res := broken(l, x, x.Began, x.Ends)
		if !ld.o.IgnoreRobots { // else the client decides when it has had enough
			ld.loseURL(res)
		}
		ld.complete(res)
	}
}

// loseURL decides about the URL of a lease that has run out: it counts as an attempt, and the reason names the
// fetcher.
func (pm *permits) loseURL(res *work.Result) {
	res.Page.RanOut, res.Page.Outcome = true, storage.Outcome{
		State: storage.Retrying, Reason: storage.ReasonLeaseLost, Note: res.Remote.Lease.Fetcher,
	}
	pm.remote.outputLost(res)
}

// broken returns the result of a lease without a result: the host is charged, and the URL is fetched
// again. How long the request took is not known: the host is not what the fetcher's time was spent on.
func broken(l *frontier.Lease, x *remote.Held, start, end time.Time) *work.Result {
	res := &work.Result{Lease: *l, Remote: &work.RemoteResult{Lease: x}}
	res.Page.Report = frontier.Report{Sent: true, Broken: true, End: end, Signal: politeness.SignalAborted}
	res.Request = work.RecordOf(&res.Lease, start, end)
	res.Request.Sent, res.Request.Failure = true, fetch.KindCanceled
	return res
}

// restoreCutOffs takes over which fetchers are cut off.
func (pm *permits) restoreCutOffs() error {
	found, err := pm.store.Marks(marks.CutOff)
	for name := range found {
		pm.remote.Fetcher(strings.TrimPrefix(name, marks.CutOff), time.Time{}).CutOff = true
	}
	return err
}

// checkFetcher takes note of a fetcher that calls. The error is remote.ErrCutOff.
func (r *remoteLeases) checkFetcher(name string, now time.Time) error {
	if r.Fetcher(name, now).CutOff {
		return fmt.Errorf("fetcher %s: %w", name, remote.ErrCutOff)
	}
	return nil
}
