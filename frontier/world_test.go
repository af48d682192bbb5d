package frontier

import (
	"container/heap"
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// epoch is when the worlds of the tests begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// disk is what the tests need of a store: storage.Store, or memory.
type disk interface {
	Commit(*storage.Batch) (storage.Result, error)
	Heads(storage.HeadsRequest) (storage.Heads, error)
	HostByID(storage.HostID) (storage.Host, error)
	Hosts(func(*storage.Host) error) error
	Policy(weburl.Origin) ([]byte, error)
	Fingerprint(weburl.URL) uint64
}

// world plays everything around a Frontier in virtual time: workers, the committer, the loader,
// name servers and web servers.
type world struct {
	t     tester
	o     Options
	f     *Frontier
	disk  disk
	scope *Scope
	now   time.Time
	quick bool // the invariants are not checked after every step

	matchTime time.Duration // of a verdict that a worker brings
	noMatch   bool          // every verdict of rules with a star is a worker's
	matches   int           // of these so far
	matching  int           // that are with workers now
	crashes   func(Lease) bool

	workers    int
	commitTime time.Duration
	loadTime   time.Duration
	answer     func(Lease) answer        // what the web answers to a request
	resolve    func(Lease) ResolveReport // what DNS answers; the world sets End
	nameTime   time.Duration
	nameTakes  func(Lease) time.Duration // replaces nameTime

	base time.Time     // with a monotonic reading, for worlds whose wall clock is set; else zero
	wall time.Duration // by how much the wall clock is ahead of the true time

	events     events
	sequence   int
	busy       int
	batch      storage.Batch
	committing bool
	out        map[uint64]request // requests under way
	still      int                // steps since the clock moved

	lookups     int
	stalls      bool                // requests are ended when Stalled returns them, as if none made progress
	broken      []Lease             // that were
	started     func(Lease)         // a request begins
	completed   func(Lease, answer) // a request ended and the frontier will be told next
	rulesJudged func(weburl.Origin, *robots.Rules)
	committed   func(*storage.Batch) // a batch is on the disk

	log       []request
	names     []lookedUp
	loads     int
	failEvery int // one load in this many fails
	failedAt  time.Time
	resolved  int
}

// lookedUp is the start of a lookup.
type lookedUp struct {
	name string
	at   time.Time
}

// answer is what a request comes to.
type answer struct {
	took time.Duration
	// reading is, of a page, how long after its request its lease ends; 0: at once. With broken, the
	// reading is broken off.
	reading    time.Duration
	notSent    bool
	broken     bool
	signal     politeness.Signal
	retryAfter time.Duration
	state      storage.State // of a page; zero: Fetched
	reason     storage.Reason
	found      []string
	wall       wall.Answer // of a page
	change     recrawl.Change
	modified   time.Time

	status   int    // of a robots.txt; zero: 200
	body     string // of a robots.txt
	location string // of a robots.txt that redirects
	failure  robots.Failure
	maxAge   time.Duration // of a robots.txt
}

// request is what the web saw.
type request struct {
	kind       Kind
	url        string
	host       string
	address    netip.Addr
	start, end time.Time
	sent       bool
	delay      time.Duration // in force when it was leased
	lease      Lease
}

func (r request) String() string {
	return fmt.Sprintf("%s %s at %v", r.kind, r.url, r.start.Sub(epoch))
}

func newWorld(t tester, o Options, d disk) *world {
	w := &world{
		t: t, o: o, disk: d, scope: NewScope(ModeAny, nil, nil), now: epoch,
		workers: 100, commitTime: 10 * time.Millisecond, loadTime: time.Millisecond, nameTime: 20 * time.Millisecond,
		matchTime: 40 * time.Millisecond,
	}
	w.answer = func(Lease) answer { return answer{took: 100 * time.Millisecond} }
	w.resolve = func(l Lease) ResolveReport {
		return ResolveReport{Addresses: []netip.Addr{addressAt(int(l.Host))}, TTL: time.Hour}
	}
	return w
}

// addressAt is one of many addresses.
func addressAt(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{203, byte(n >> 16), byte(n >> 8), byte(n)})
}

// testOptions are polite ones without chance.
func testOptions() Options {
	o := DefaultOptions()
	o.Politeness.Delay = time.Second
	return o
}

// open begins a process: a frontier that knows what the disk knows.
func (w *world) open() {
	w.t.Helper()
	f := must.Get(New(w.o, w.scope, w.now))(w.t)
	w.f, w.out = f, map[uint64]request{}
	if w.stalls {
		w.after(250*time.Millisecond, w.breakOff)
	}
	if w.noMatch {
		f.matches.work = -1
	}
	must.Do(w.t, w.disk.Hosts(func(h *storage.Host) error { return f.Restore(h, w.now) }))
}

// crash ends the process: what is not on the disk is lost. Requests under way reach their hosts all
// the same.
func (w *world) crash() {
	for _, r := range w.out {
		r.end = w.now
		w.log = append(w.log, r)
	}
	w.f, w.batch, w.events, w.busy, w.lookups, w.matching, w.committing = nil, storage.Batch{}, nil, 0, 0, 0, false
	w.o.HeldSince = w.now
}

// add puts URLs on the disk as a commit of another process would, or of this one.
func (w *world) add(urls ...string) {
	w.t.Helper()
	var b storage.Batch
	for _, u := range urls {
		b.Found = append(b.Found, w.found(u))
	}
	w.commit(b)
}

func (w *world) found(u string) storage.Found {
	w.t.Helper()
	parsed := must.Get(weburl.Parse(u))(w.t)
	return storage.Found{URL: parsed, Fingerprint: w.disk.Fingerprint(parsed), At: w.now}
}

func (w *world) commit(b storage.Batch) {
	w.t.Helper()
	r := must.Get(w.disk.Commit(&b))(w.t)
	if w.f != nil {
		w.f.Committed(&b, r, w.now)
		w.collect()
	}
}

// collect takes over what the frontier has for the disk.
func (w *world) collect() {
	b := w.f.TakeBatch()
	w.batch.Done = append(w.batch.Done, b.Done...)
	w.batch.Hosts = append(w.batch.Hosts, b.Hosts...)
	w.batch.Policies = append(w.batch.Policies, b.Policies...)
	w.batch.Ensure = append(w.batch.Ensure, b.Ensure...)
	for _, want := range w.f.TakeWants() {
		w.load(want)
	}
}

// load reads now and brings it later, as the loader does.
func (w *world) load(want LoadRequest) {
	w.loads++
	if !w.failedAt.IsZero() && w.now.Sub(w.failedAt) < time.Duration(idleTime-lead) {
		w.t.Errorf("a load that failed is tried again after %v", w.now.Sub(w.failedAt))
	}
	w.failedAt = time.Time{}
	l := must.Get(readLoad(w.disk, want, &w.o))(w.t)
	w.after(w.loadTime, func() {
		if w.failEvery > 0 && w.loads%w.failEvery == 1 {
			w.f.LoadFailed(want.Host, w.now)
			w.failedAt = w.now
			return
		}
		must.Do(w.t, w.f.Loaded(l, w.now))
	})
}

func readLoad(d disk, want LoadRequest, o *Options) (*Load, error) {
	host, err := d.HostByID(want.Host)
	if err != nil {
		return nil, err
	}
	l := &Load{Host: host, At: want.Now, Queues: make([]QueueLoad, len(host.Queues))}
	for i := range host.Queues {
		from := &host.Queues[i]
		q := QueueRequest{From: from.Cursor, Max: want.Max}
		if i < len(want.Queues) {
			q = want.Queues[i]
		}
		to := &l.Queues[i]
		request := storage.HeadsRequest{Host: host.ID, Origin: uint8(i), From: q.From, Queued: q.Max, Due: want.Due,
			Recrawls: want.Recrawls, Now: want.Now}
		if from.Queued+from.Due == 0 {
			request.From = max(q.From, host.Tail)
			if to.Heads.Next = request.From; from.Recrawls == 0 || want.Recrawls == 0 {
				continue
			}
		}
		to.Heads, err = d.Heads(request)
		if err != nil {
			return nil, err
		}
		if encoded, err := d.Policy(from.Origin); err == nil && !q.Known && len(encoded) > 0 {
			if to.Record, err = robots.DecodeRecord(encoded); err != nil {
				return nil, err
			}
			to.Rules = to.Record.Rules(o.Tokens...)
		}
	}
	return l, nil
}

// lookUpNames begins the lookups that are due.
func (w *world) lookUpNames() {
	for l, ok := w.f.NextName(w.now); ok; l, ok = w.f.NextName(w.now) {
		w.lookups++
		w.names = append(w.names, lookedUp{l.HostName, w.now})
		took := w.nameTime
		if w.nameTakes != nil {
			took = w.nameTakes(l)
		}
		w.after(took, func() {
			w.lookups--
			w.resolved++
			r := w.resolve(l)
			r.End = w.now
			w.must(w.f.CompleteResolve(l.ID, r))
		})
	}
}

// start gives a lease to a worker.
func (w *world) start(l Lease) {
	w.busy++
	start := w.now
	if l.Kind == Match {
		if w.matching++; w.matching > maxMatching {
			w.t.Errorf("%d Match leases are out", w.matching)
		}
		w.after(w.matchTime, func() {
			w.busy--
			w.matching--
			w.matches++
			w.must(w.f.CompleteMatch(l.ID, MatchReport{
				End: w.now, Verdict: l.Rules.Match(l.Head.RequestURI), Crashed: w.crashes != nil && w.crashes(l),
			}))
		})
		return
	}
	if w.started != nil {
		w.started(l)
	}
	a := w.answer(l)
	w.out[l.ID] = request{
		kind: l.Kind, url: l.URL.String(), host: l.HostName, address: l.Address, start: start, sent: !a.notSent,
		delay: l.Delay, lease: l,
	}
	w.after(a.took, func() { w.end(l.ID, a) })
}

// requestEnd is what a worker tells of a request that ends now.
func (w *world) requestEnd(a answer) RequestEnd {
	return RequestEnd{Report: Report{Sent: !a.notSent, Broken: a.broken, End: w.now, Duration: a.took, Signal: a.signal,
		RetryAfter: a.retryAfter}, Wall: a.wall}
}

// end is the end of a request, unless it was broken off before.
func (w *world) end(lease uint64, a answer) {
	r, out := w.out[lease]
	if !out {
		return
	}
	delete(w.out, lease)
	r.end = w.now
	w.log = append(w.log, r)
	end := w.requestEnd(a)
	complete := func() {
		w.busy--
		if w.completed != nil {
			w.completed(r.lease, a)
		}
		w.complete(r.lease, a, end)
	}
	if r.kind != Page || a.reading == 0 {
		complete()
		return
	}
	first := end
	if a.broken {
		first.Broken, first.Signal = false, politeness.SignalOK
	}
	w.must(w.f.EndRequest(lease, first))
	w.after(a.reading, complete)
}

// breakOff breaks off what others should not wait for, four times a second.
func (w *world) breakOff() {
	for _, id := range w.f.Stalled(w.now, func(uint64, time.Duration, time.Duration) bool { return true }) {
		r := w.out[id]
		w.broken = append(w.broken, r.lease)
		a := answer{took: w.now.Sub(r.start), signal: politeness.SignalUnreachable}
		a.state, a.failure = storage.Retrying, robots.FailureTimeout
		w.end(id, a)
	}
	w.after(250*time.Millisecond, w.breakOff)
}

func (w *world) complete(l Lease, a answer, end RequestEnd) {
	if l.Kind == Page {
		o := storage.Outcome{State: a.state, Reason: a.reason}
		if a.state == storage.Queued {
			o.State = storage.Fetched
		}
		for _, u := range a.found {
			w.batch.Found = append(w.batch.Found, w.found(u))
		}
		w.must(w.f.CompletePage(l.ID, PageReport{RequestEnd: end, Outcome: o, Change: a.change, Modified: a.modified}))
		return
	}
	r := RobotsReport{RequestEnd: RequestEnd{Report: end.Report}}
	if end.answered() {
		out := robots.Outcome{URL: l.URL.String(), Redirects: l.Robots.Hops, HostAnswers: l.Robots.HostAnswers,
			Failure: a.failure, Status: max(a.status, 200), Body: []byte(a.body)}
		if a.location != "" {
			out.Status, out.Header.Location = 301, a.location
		}
		if a.maxAge > 0 {
			out.Header.CacheControl = fmt.Sprintf("max-age=%d", int(a.maxAge.Seconds()))
		}
		record, action := w.o.Robots.Next(l.Robots.Previous, out, w.now)
		if action.Kind == robots.ActionRedirect {
			target, err := weburl.Parse(action.URL)
			w.must(err)
			r.Redirect = target
		} else {
			r.Record, r.Rules = record, record.Rules(w.o.Tokens...)
			if len(record.Body)%2 == 1 { // else the frontier packs it
				r.Packed = robots.Pack(record.Body)
			}
			if w.rulesJudged != nil {
				w.rulesJudged(l.Robots.Origin, r.Rules)
			}
		}
	}
	w.must(w.f.CompleteRobots(l.ID, r))
	w.shared(l, r.Rules)
}

// shared handles rules that came with a job for another origin, and that the host which served it
// applies to its own: they are on their way to the disk under both.
func (w *world) shared(l Lease, rules *robots.Rules) {
	from := l.URL.Origin()
	if rules == nil || w.rulesJudged == nil || from == l.Robots.Origin {
		return
	}
	if slices.ContainsFunc(w.f.results.batch.Policies, func(p storage.Policy) bool { return p.Origin == from }) {
		w.rulesJudged(from, rules)
	}
}

func (w *world) must(err error) {
	must.Do(w.t, err)
}

// flush hands what has gathered to the committer, if that is idle.
func (w *world) flush() {
	if w.committing || w.batch.Empty() {
		return
	}
	b := w.batch
	w.batch, w.committing = storage.Batch{}, true
	r, err := w.disk.Commit(&b)
	w.must(err)
	if w.committed != nil {
		w.committed(&b)
	}
	w.after(w.commitTime, func() {
		w.committing = false
		w.f.Committed(&b, r, w.now)
	})
}

// step leases what is due and lets the next thing happen; false if nothing ever will, or not before
// a limit.
func (w *world) step(limit time.Time) bool {
	for w.lookUpNames(); w.busy < w.workers; w.lookUpNames() {
		l, ok := w.f.Next(w.now)
		w.collect()
		if !ok {
			break
		}
		w.start(l)
	}
	w.lookUpNames()
	w.flush()
	w.check()
	at, ok := w.f.NextWake()
	if !ok || w.busy >= w.workers {
		at = limit.Add(1)
	} else if !at.After(w.now) {
		w.t.Fatalf("the frontier has nothing at %v and says that it has at %v", w.now, at)
	}
	if w.still++; w.still > 200_000 {
		w.t.Fatal("the clock stands still")
	}
	if len(w.events) > 0 && !w.events[0].at.After(at) {
		at = w.events[0].at
	}
	if at.After(limit) {
		return false
	}
	if at.After(w.now) {
		w.now, w.still = w.read(at), 0
	}
	for len(w.events) > 0 && !w.events[0].at.After(w.now) {
		heap.Pop(&w.events).(event).do()
		w.collect()
		w.check()
	}
	return true
}

func (w *world) check() {
	if !w.quick {
		checkInvariants(w.t, w.f)
	}
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	limit := w.now.Add(d)
	for w.step(limit) {
	}
	w.now = w.read(limit)
}

// finish runs until the frontier reports that it has finished; it fails if that takes longer than
// d.
func (w *world) finish(d, within time.Duration) {
	w.t.Helper()
	limit := w.now.Add(d)
	done := func() bool {
		return w.f.Finished(w.now, within) && w.busy == 0 && w.lookups == 0 && !w.committing && w.batch.Empty()
	}
	for !done() {
		if !w.step(limit) && !done() {
			w.t.Fatalf("not finished after %v: %v, %v", d, w.f.hostStates(), w.log)
		}
	}
}

// checkManners holds the log to the delays in force: of each host no two requests side by side and
// none too early, where there is a delay; and of each address no more side by side than allowed and
// none too early.
func (w *world) checkManners() {
	w.t.Helper()
	hosts := map[string]request{}
	addresses := map[netip.Prefix][]request{}
	slices.SortStableFunc(w.log, func(a, b request) int { return a.start.Compare(b.start) })
	for _, r := range w.log {
		if !r.sent {
			continue
		}
		if before, ok := hosts[r.host]; ok && r.delay != 0 && r.start.Before(before.end.Add(max(r.delay, 0))) {
			w.t.Fatalf("%v: the one before it ended at %v, the delay in force is %v", r, before.end.Sub(epoch), r.delay)
		}
		if r.end.After(hosts[r.host].end) {
			hosts[r.host] = r
		}
		key := politeness.AddressKey(r.address)
		others := 0
		for _, o := range addresses[key] {
			if o.end.After(r.start) {
				others++
			} else if gap := w.o.Politeness.IPDelay; r.start.Before(o.end.Add(gap)) {
				w.t.Fatalf("%v: a request to its address ended at %v, ip_delay is %v", r, o.end.Sub(epoch), gap)
			}
		}
		must.True(w.t, others < w.o.Politeness.PerIP, "%v: %d other requests to its address are under way", r, others)
		recent := append(addresses[key], r)
		addresses[key] = recent[max(0, len(recent)-64):]
	}
}

// served counts the pages by host.
func (w *world) served() map[string]int {
	n := map[string]int{}
	for _, r := range w.log {
		if r.kind == Page {
			n[r.host]++
		}
	}
	return n
}

// pages are the URLs of the pages that were fetched, in their order.
func (w *world) pages() (urls []string) {
	for _, r := range w.log {
		if r.kind == Page {
			urls = append(urls, r.url)
		}
	}
	return urls
}

// event is something that happens later.
type event struct {
	at       time.Time
	sequence int
	do       func()
}

func (w *world) after(d time.Duration, do func()) {
	w.sequence++
	heap.Push(&w.events, event{w.now.Add(d), w.sequence, do})
}

type events []event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].sequence < e[j].sequence
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e *events) Push(x any) { *e = append(*e, x.(event)) }

func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// tester is what testing.TB and rapid.T have in common and is used here.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// tries sets how many random cases rapid makes up in a test, where its flag and its variable say
// nothing.
func tries(t *testing.T, n int) {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != "100" {
		return
	}
	set := func(n string) {
		must.Do(t, flag.Set(f.Name, n))
	}
	set(strconv.Itoa(n))
	t.Cleanup(func() { set("100") })
}
