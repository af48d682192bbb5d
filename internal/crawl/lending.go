package crawl

import (
	"container/heap"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
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
	// maxFetchers bounds the fetchers that are known and hold nothing.
	maxFetchers = 1000
	// maxEnded is how many ended leases are remembered, so that a late report can be told from an
	// unknown one.
	maxEnded = 10_000
	// saveLeasesAfter is how long a lease is in the start ledger only. One that is out for longer
	// gets a mark in the database, so that the ledger does not grow.
	saveLeasesAfter = 2 * time.Second
)

const (
	// markLease begins the names of the marks of leases, and markCutOff those of fetchers that are
	// cut off.
	markLease, markCutOff = "lease/", "cutoff/"
)

// remoteLease is a lease that a fetcher has.
type remoteLease struct {
	leaseRecord
	id         LeaseID
	frontierID uint64
	offset     uint64 // of its last line in the start ledger
	at         storage.Position
	given      time.Time // with a monotonic reading
	deadline   time.Time // with a monotonic reading
	index      int       // in the heap of deadlines
	ofHost     int       // index in the list of its host
	marked     bool      // it has a mark, in the database or the batch
	saved      bool      // the mark is as the last line in the start ledger
	claimed    bool      // its report is being worked on
	overridden bool      // its URL was put since, and became another state
	became     storage.State
	adopted    bool // an earlier process gave it
}

// remoteLeases are the page leases that fetchers have, and those who wait for some. The dispatcher
// owns them.
type remoteLeases struct {
	out       map[LeaseID]*remoteLease
	byURL     map[storage.Position]*remoteLease
	byHost    hostLeases
	byText    map[string]*remoteLease // by the text of the URL
	deadlines deadlines
	unsaved   []savedLater // in the order of their offsets
	ended     map[LeaseID]bool
	endedList []LeaseID // a ring
	endedNext int
	fetchers  map[string]*Fetcher
	waiters   []*leaseWait
	wake      time.Time // when there may be a lease for a waiter; zero: only an event can change that
	parked    []*claims // wait until the hosts of adopted leases are loaded
	// parkedPuts wait for the same.
	parkedPuts []*putGroup
	reported   map[*remoteLease]uint64 // the offsets in the start ledger of the reports that are worked on
	working    int                     // claimed leases
}

// lentPage is a lease on its way to a fetcher.
type lentPage struct {
	lease  frontier.Lease
	remote *remoteLease
}

// savedLater is a line of the start ledger whose lease may need a mark later.
type savedLater struct {
	lease  *remoteLease
	offset uint64
}

func newRemoteLeases() remoteLeases {
	return remoteLeases{
		out: make(map[LeaseID]*remoteLease), byURL: make(map[storage.Position]*remoteLease),
		byHost: make(hostLeases), byText: make(map[string]*remoteLease), reported: make(map[*remoteLease]uint64),
		ended: make(map[LeaseID]bool), fetchers: make(map[string]*Fetcher),
	}
}

// deadlines is a heap of leases by their deadline.
type deadlines []*remoteLease

// Len is part of heap.Interface.
func (h deadlines) Len() int { return len(h) }

// Less is part of heap.Interface.
func (h deadlines) Less(i, j int) bool { return h[i].deadline.Before(h[j].deadline) }

// Swap is part of heap.Interface.
func (h deadlines) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is part of heap.Interface.
func (h *deadlines) Push(x any) {
	l := x.(*remoteLease)
	l.index = len(*h)
	*h = append(*h, l)
}

// Pop is part of heap.Interface.
func (h *deadlines) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.index = -1
	return l
}

// nextDeadline is when the next lease runs out; zero: none is out.
func (r *remoteLeases) nextDeadline() time.Time {
	if len(r.deadlines) == 0 {
		return time.Time{}
	}
	return r.deadlines[0].deadline
}

// leaseWait is a request for leases.
type leaseWait struct {
	request LeaseRequest
	host    storage.HostID
	given   []*lentPage   // set before done is closed, as is err
	err     error         //
	done    chan struct{} // closed by the dispatcher when it is through with the request
	// lastChance says that the request ends when the queues are read that were being read at its mark.
	lastChance bool
	mark       uint64
}

// loadPatience is for how long a request that is to end waits for queues that are being read. It bounds
// what a disk that hangs can do.
const loadPatience = 10 * time.Second

// run waits until the request is answered, or waited or ctx end. The error is ErrCutOff,
// ErrNotRunning or ErrLease.
func (w *leaseWait) run(ctx, waited context.Context, m *mailbox) error {
	uncancelled := context.WithoutCancel(ctx)
	if err := m.call(uncancelled, func(d *dispatcher) { d.addWaiter(w) }); err != nil {
		return err
	}
	select {
	case <-w.done:
		return w.err
	case <-waited.Done():
	}
	if ctx.Err() == nil {
		_ = m.call(uncancelled, func(d *dispatcher) { w.lastChance, w.mark = true, d.loads.Mark() })
		select {
		case <-w.done:
			return w.err
		case <-ctx.Done():
		case <-time.After(loadPatience):
		}
	}
	// After an error the dispatcher has turned the request away.
	_ = m.call(uncancelled, func(d *dispatcher) { d.remote.removeWaiter(w) })
	<-w.done
	return w.err
}

// addWaiter takes in a request for leases.
func (d *dispatcher) addWaiter(w *leaseWait) {
	r := &d.remote
	w.err = r.checkFetcher(w.request.Fetcher, d.o.Now())
	if w.err == nil && len(r.waiters) >= maxWaiters {
		w.err = fmt.Errorf("%w: %d requests wait already", ErrLease, maxWaiters)
	}
	if w.err != nil || d.lend(w) {
		close(w.done)
		return
	}
	r.waiters = append(r.waiters, w)
}

// removeWaiter ends a request, whether it has leases or not.
func (r *remoteLeases) removeWaiter(w *leaseWait) {
	if i := slices.Index(r.waiters, w); i >= 0 {
		r.waiters = slices.Delete(r.waiters, i, i+1)
		close(w.done)
	}
}

// turnAway ends all that waits for leases, and the reports that wait for hosts to be loaded.
func (r *remoteLeases) turnAway() {
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
func (d *dispatcher) lendPages() {
	r := &d.remote
	if !d.isPaused() && d.f.Prepare(d.o.Now()) {
		d.collect()
	}
	if r.wake = (time.Time{}); len(r.waiters) == 0 {
		return
	}
	r.waiters = slices.DeleteFunc(r.waiters, func(w *leaseWait) bool {
		ended := d.lend(w) || w.lastChance && d.loads.HaveCome(w.mark, w.host)
		if ended {
			close(w.done)
		}
		return ended
	})
}

// canLend reports whether another lease may be given out. The caller holds the lock of the share.
func (d *dispatcher) canLend(now time.Time) bool {
	if d.isPaused() || d.inactive.Load() || len(d.remote.out) >= maxLeases {
		return false
	}
	switch {
	case d.maxRate.allows(robotsWorkers, now):
		return true
	case d.share.full:
		d.share.waitToLend()
	default:
		d.remote.wake = earliest(d.remote.wake, d.maxRate.next)
	}
	return false
}

// lend gives leases to one who waits for some. It reports whether there were any.
func (d *dispatcher) lend(w *leaseWait) bool {
	now := d.o.Now()
	d.runOut(now)
	d.mayBegin()
	d.takeOptOuts()
	d.share.lock()
	defer d.share.unlock()
	if !d.canLend(now) {
		return false
	}
	want := frontier.Want{Host: w.host, PerHost: w.request.PerHost, Hosts: w.request.Hosts}
	wake := d.f.LeaseRemote(now, want, func(l *frontier.Lease) bool {
		if l.Kind != frontier.Page {
			return d.serveInside(*l, now) && d.canLend(now)
		}
		given, err := d.give(*l, &w.request, now)
		if err != nil {
			d.notSent(l, now)
			d.fail(d.stall.startFailed(err, now))
			return false
		}
		w.given = append(w.given, given)
		return len(w.given) < w.request.N && d.canLend(now)
	})
	d.remote.wake = earliest(d.remote.wake, wake)
	d.collect()
	return len(w.given) > 0
}

// serveInside gives a lease that a page of a fetcher waits for to a worker.
func (d *dispatcher) serveInside(l frontier.Lease, now time.Time) bool {
	offset, entered := d.enter(&l, now)
	if !entered {
		return false
	}
	d.share.begin()
	d.maxRate.took(&l, now)
	d.flights.give(&l, offset, now)
	return true
}

// give makes a remote lease of a page lease, and writes it to the start ledger.
func (d *dispatcher) give(l frontier.Lease, to *LeaseRequest, now time.Time) (*lentPage, error) {
	id := LeaseID(rand.Text())
	x := &remoteLease{
		id: id, frontierID: l.ID, at: storage.Position{Host: l.Host, Ordinal: l.Head.Ordinal}, given: now,
		deadline: now.Add(to.Visibility),
		leaseRecord: leaseRecord{
			ID: id, Fetcher: to.Fetcher, URL: l.URL.String(), Given: now.Round(0), Deadline: now.Add(to.Visibility).Round(0),
			Delay: l.Delay, Line: l.Verdict.Line, Again: l.Head.Last.At.Unix() == now.Unix(),
		},
	}
	if l.Address.IsValid() {
		x.Address = l.Address.String()
	}
	if l.Rules != nil && !l.Rules.Version().IsZero() {
		x.Version = l.Rules.Version().String()
	}
	offset, err := d.ledger.lend(&l, x)
	if err != nil {
		return nil, err
	}
	d.stall.started()
	d.maxRate.took(&l, now)
	d.remote.enter(x, offset)
	d.remote.fetchers[x.Fetcher].Taken++
	d.flights.pages++
	return &lentPage{l, x}, nil
}

// enter takes note of a lease that is out.
func (r *remoteLeases) enter(x *remoteLease, offset uint64) {
	x.offset, x.Offset = offset, offset
	r.out[x.id], r.byURL[x.at], r.byText[x.URL] = x, x, x
	r.byHost.add(x)
	heap.Push(&r.deadlines, x)
	r.fetcher(x.Fetcher, x.given).Leases++
	r.unsaved = append(r.unsaved, savedLater{x, offset})
}

// adopt takes over a lease of an earlier process. It has a mark.
func (d *dispatcher) adopt(record leaseRecord, frontierID uint64, at storage.Position) {
	now := d.o.Now()
	x := &remoteLease{
		leaseRecord: record, id: record.ID, frontierID: frontierID, at: at, given: now.Add(-max(now.Sub(record.Given), 0)),
		deadline: now.Add(record.left(now)), marked: true, saved: true, adopted: true, offset: record.Offset,
	}
	r := &d.remote
	r.out[x.id], r.byURL[x.at], r.byText[x.URL] = x, x, x
	r.byHost.add(x)
	heap.Push(&r.deadlines, x)
	f := r.fetcher(x.Fetcher, now)
	f.Leases++
	d.flights.pages++
}

// save makes marks of leases that have been in the ledger for a while. Lines before those that
// remain need not be remembered.
func (r *remoteLeases) save(into *batch, now time.Time) {
	n := 0
	for _, entry := range r.unsaved {
		x := entry.lease
		if isOut := r.out[x.id] == x && !x.saved && x.offset == entry.offset; isOut {
			if now.Sub(x.given) < saveLeasesAfter {
				break
			}
			into.setMark(markLease+string(x.id), x.leaseRecord.encode())
			x.marked, x.saved = true, true
		}
		n++
	}
	r.unsaved = r.unsaved[n:]
}

// offsetBefore returns the offset in the ledger before which every lease has ended or has a mark,
// given that of other requests.
func (r *remoteLeases) offsetBefore(others uint64) uint64 {
	for _, offset := range r.reported {
		others = min(others, offset)
	}
	if len(r.unsaved) == 0 {
		return others
	}
	return min(others, r.unsaved[0].offset)
}

// end takes a lease back that has ended.
func (d *dispatcher) endRemote(x *remoteLease) {
	r := &d.remote
	delete(r.out, x.id)
	delete(r.byURL, x.at)
	r.byHost.remove(x)
	delete(r.byText, x.URL)
	if x.index >= 0 {
		heap.Remove(&r.deadlines, x.index)
	}
	if x.marked {
		d.pending.setMark(markLease+string(x.id), nil)
	}
	if f := r.fetchers[x.Fetcher]; f != nil {
		f.Leases--
	}
	if x.claimed {
		r.working--
		delete(r.reported, x)
	}
	d.flights.pages--
	if len(r.endedList) < maxEnded {
		r.endedList = append(r.endedList, x.id)
	} else {
		delete(r.ended, r.endedList[r.endedNext])
		r.endedList[r.endedNext] = x.id
		r.endedNext = (r.endedNext + 1) % maxEnded
	}
	r.ended[x.id] = true
}

// extend moves the deadline of a lease; zero: it is not out, or not the fetcher's.
func (d *dispatcher) extend(fetcher string, id LeaseID, visibility time.Duration) (time.Time, error) {
	now := d.o.Now()
	x := d.remote.out[id]
	if x == nil || x.claimed || x.Fetcher != fetcher || !now.Before(x.deadline) {
		return time.Time{}, nil
	}
	l, _ := d.f.LeaseOf(x.frontierID)
	until := now.Add(visibility)
	if longest := x.given.Add(MaxLeaseLife); until.After(longest) {
		until = longest
	}
	before := x.Deadline
	x.Deadline = until.Round(0)
	offset, err := d.ledger.lend(l, x)
	if err != nil {
		x.Deadline = before
		return time.Time{}, err
	}
	x.deadline, x.offset, x.Offset, x.saved = until, offset, offset, false
	heap.Fix(&d.remote.deadlines, x.index)
	d.remote.unsaved = append(d.remote.unsaved, savedLater{x, offset})
	return x.Deadline, nil
}

// runOut ends the leases whose deadline has passed: the host is charged as for a broken request, and
// the URL goes back to its queue.
func (d *dispatcher) runOut(now time.Time) {
	r := &d.remote
	for len(r.deadlines) > 0 && !now.Before(r.deadlines[0].deadline) {
		x := r.deadlines[0]
		l, loaded := d.f.LeaseOf(x.frontierID)
		if !loaded { // its host is being read
			x.deadline = now.Add(time.Second)
			heap.Fix(&r.deadlines, 0)
			continue
		}
		if f := r.fetchers[x.Fetcher]; f != nil {
			f.RanOut++
		}
		d.log.Debug("a lease has run out", "url", x.URL, "fetcher", x.Fetcher)
		res := broken(l, x, x.given, x.deadline)
		if !d.o.IgnoreRobots { // else the client decides when it has had enough
			res.page.RanOut, res.page.Outcome = true, storage.Outcome{Reason: reasonOf(fetch.KindCanceled)}
		}
		d.complete(res)
	}
}

// describe adds to the record of a request what the lease says of it. An adopted lease was allowed by
// the robots.txt of its time.
func (x *remoteLease) describe(q *requestlog.Request) {
	q.Fetcher = x.Fetcher
	if !x.adopted {
		return
	}
	q.Allowed, q.Line = true, x.Line
	if v, err := robots.ParseVersion(x.Version); err == nil && v != q.Policy.Version {
		q.Policy = &requestlog.Policy{Version: v}
	}
}

// broken returns the result of a lease without a result: the host is charged, and the URL is fetched
// again.
func broken(l *frontier.Lease, x *remoteLease, start, end time.Time) *result {
	res := &result{lease: *l, remote: &remoteResult{lease: x}}
	res.page.Report = frontier.Report{
		Sent: true, Broken: true, End: end, Duration: end.Sub(start), Signal: politeness.SignalAborted,
	}
	res.request = recordOf(&res.lease, start, end)
	res.request.Sent, res.request.Failure = true, fetch.KindCanceled
	return res
}
