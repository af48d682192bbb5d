package main

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// epoch is the start of the simulated time.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// answers describe the responses of the web.
type answers struct {
	failing      float64 // the part of the requests for pages that fail
	least, extra int     // milliseconds that a request takes: at least, and up to this many more
}

// usual is a web with the usual responses.
var usual = answers{failing: 0.005, least: 100, extra: 400}

// crawl is one run of a policy on a web.
type crawl struct {
	f     *frontier.Frontier
	o     frontier.Options
	store *memory
	pages map[string]*page // by URL
	answers
	dates  bool // pages say when they changed last
	random *rand.Rand
	now    time.Time
	events events
	batch  storage.Batch
	err    error

	recrawls, early int
	ends            map[storage.HostID]time.Time // of the last request to each host
	delays          map[string]time.Duration     // Crawl-delays
}

// run lets a policy crawl a web for some days that do not count and some that do, and returns its
// score. It fails if a request to a host comes sooner than its Crawl-delay allows.
func run(which int, seed uint64, p policy, budget float64, warmUp, counts int) (Score, error) {
	all, days := newWeb(which, seed), warmUp+counts
	for _, page := range all {
		page.from = float64(warmUp)
	}
	renewer, err := p.make(all, budget)
	if err != nil {
		return Score{}, err
	}
	c, err := newCrawl(all, renewer, frontier.DefaultOptions(), usual, seed)
	if err != nil {
		return Score{}, err
	}
	c.dates = p.Dates
	c.until(epoch.Add(time.Duration(days) * day))
	s := score(all, float64(days))
	s.Visits = float64(c.recrawls) / float64(days)
	return s, c.err
}

// newCrawl returns a crawl of pages.
func newCrawl(all []*page, renewer frontier.Recrawler, o frontier.Options, a answers, seed uint64) (*crawl, error) {
	c := &crawl{
		store: newMemory(), pages: map[string]*page{}, answers: a, random: rand.New(rand.NewPCG(seed, 99)), now: epoch,
		ends: map[storage.HostID]time.Time{}, delays: map[string]time.Duration{}, o: o,
	}
	c.o.Recrawl, c.o.Jitter = renewer, c.random.Float64
	var err error
	if c.f, err = frontier.New(c.o, frontier.NewScope(frontier.ModeAny, nil, nil), epoch); err != nil {
		return nil, err
	}
	c.addPages(all)
	return c, nil
}

// until runs the crawl up to an instant.
func (c *crawl) until(end time.Time) {
	for c.err == nil && c.step(end) {
	}
	if c.err == nil && c.early > 0 {
		c.err = fmt.Errorf("%d requests came too early for their hosts", c.early)
	}
}

// addPages adds all pages to the store. Their importance becomes a priority.
func (c *crawl) addPages(all []*page) {
	middle := 1 / math.Sqrt(float64(len(all))) * all[0].scale(all)
	var b storage.Batch
	for _, p := range all {
		c.pages[p.url.String()] = p
		c.delays[p.url.Host()] = delays[p.host%len(delays)]
		b.Found = append(b.Found, storage.Found{URL: p.url, Priority: int8(math.Round(4 * math.Log2(p.weight/middle))),
			At: c.now})
	}
	r := c.store.commit(&b)
	c.f.Committed(&b, r, c.now)
	c.collect()
}

// scale returns the importance of the most important page.
func (p *page) scale(all []*page) (most float64) {
	for _, p := range all {
		most = max(most, p.weight)
	}
	return most
}

// step starts what is due and runs the next event. It returns false when the end is reached.
func (c *crawl) step(end time.Time) bool {
	for {
		c.resolveNames()
		l, ok := c.f.Next(c.now)
		loaded := c.collect()
		if ok {
			c.start(l)
		} else if !loaded {
			break
		}
	}
	c.flush()
	at, ok := c.f.NextWake()
	if !ok {
		at = end
	}
	if len(c.events) > 0 && c.events[0].at.Before(at) {
		at = c.events[0].at
	}
	if !at.Before(end) {
		return false
	}
	if at.After(c.now) {
		c.now = at
	}
	for len(c.events) > 0 && !c.events[0].at.After(c.now) {
		heap.Pop(&c.events).(event).do()
		c.collect()
	}
	return true
}

// collect takes the frontier's results for the store, and answers its load requests at once. It
// reports whether there were any.
func (c *crawl) collect() (loaded bool) {
	for {
		b := c.f.TakeBatch()
		c.batch.Done = append(c.batch.Done, b.Done...)
		c.batch.Hosts = append(c.batch.Hosts, b.Hosts...)
		c.batch.Policies = append(c.batch.Policies, b.Policies...)
		wants := c.f.TakeWants()
		if len(wants) == 0 {
			return loaded
		}
		loaded = true
		for _, w := range wants {
			c.load(w)
		}
	}
}

// flush commits the collected results.
func (c *crawl) flush() {
	for !c.batch.Empty() {
		b := c.batch
		c.batch = storage.Batch{}
		c.f.Committed(&b, c.store.commit(&b), c.now)
		c.collect()
	}
}

func (c *crawl) load(w frontier.LoadRequest) {
	host := c.store.host(w.Host)
	q := frontier.QueueRequest{From: host.Queues[0].Cursor, Max: w.Max}
	if len(w.Queues) > 0 {
		q = w.Queues[0]
	}
	l := &frontier.Load{Host: host, At: c.now, Queues: make([]frontier.QueueLoad, 1)}
	to := &l.Queues[0]
	to.Heads = c.store.heads(storage.HeadsRequest{Host: w.Host, From: q.From, Queued: q.Max, Due: w.Due,
		Recrawls: w.Recrawls, Now: c.now})
	if encoded := c.store.policies[host.Queues[0].Origin]; !q.Known && len(encoded) > 0 {
		record, err := robots.DecodeRecord(encoded)
		c.fail(err)
		to.Record, to.Rules = record, record.Rules(c.o.Tokens...)
	}
	c.fail(c.f.Loaded(l, c.now))
}

// resolveNames answers the lookups that are due.
func (c *crawl) resolveNames() {
	for l, ok := c.f.NextName(c.now); ok; l, ok = c.f.NextName(c.now) {
		address := netip.AddrFrom4([4]byte{203, 0, byte(l.Host >> 8), byte(l.Host)})
		c.after(20*time.Millisecond, func() {
			c.fail(c.f.CompleteResolve(l.ID, frontier.ResolveReport{End: c.now, Addresses: []netip.Addr{address},
				TTL: day}))
		})
	}
}

// start makes the web respond to a lease.
func (c *crawl) start(l frontier.Lease) {
	if last, ok := c.ends[l.Host]; ok && c.now.Sub(last) < max(c.delays[l.HostName], c.o.Politeness.Delay) &&
		l.Learned {
		c.early++
	}
	took := time.Duration(c.least+c.random.IntN(c.extra)) * time.Millisecond
	c.after(took, func() {
		c.ends[l.Host] = c.now
		report := frontier.Report{Sent: true, End: c.now, Duration: took}
		if l.Kind == frontier.Robots {
			c.robots(l, report)
		} else {
			c.page(l, report)
		}
	})
}

// robots responds to a request for robots.txt.
func (c *crawl) robots(l frontier.Lease, report frontier.Report) {
	body := fmt.Sprintf("User-agent: *\nDisallow: /private\nCrawl-delay: %d\n", int(c.delays[l.HostName].Seconds()))
	out := robots.Outcome{URL: l.URL.String(), Status: 200, Body: []byte(body)}
	out.Header.CacheControl = "max-age=86400"
	record, _ := c.o.Robots.Next(l.Robots.Previous, out, c.now)
	c.fail(
		c.f.CompleteRobots(l.ID, frontier.RobotsReport{RequestEnd: frontier.RequestEnd{Report: report}, Record: record,
			Rules: record.Rules(c.o.Tokens...)}))
}

// page responds to a request for a page.
func (c *crawl) page(l frontier.Lease, report frontier.Report) {
	if l.Head.Last.State != storage.Queued {
		c.recrawls++
	}
	r := frontier.PageReport{Outcome: storage.Outcome{State: storage.Fetched, Status: 200}}
	r.Report = report
	if c.random.Float64() < c.failing {
		r.Signal = politeness.SignalServerError
		r.Outcome = storage.Outcome{State: storage.Retrying, Status: 500}
		c.fail(c.f.CompletePage(l.ID, r))
		return
	}
	p := c.pages[l.URL.String()]
	first, changed := p.fetched(c.today())
	switch {
	case changed:
		r.Change = recrawl.Changed
	case !first:
		r.Change = recrawl.Same
	}
	if c.dates && p.changed > 0 {
		r.Modified = epoch.Add(time.Duration(p.changed * float64(day)))
	}
	c.fail(c.f.CompletePage(l.ID, r))
}

// today returns the time in days.
func (c *crawl) today() float64 { return c.now.Sub(epoch).Hours() / 24 }

func (c *crawl) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// event is a function to call at an instant.
type event struct {
	at time.Time
	n  int
	do func()
}

func (c *crawl) after(d time.Duration, do func()) {
	heap.Push(&c.events, event{c.now.Add(d), len(c.events), do})
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
