package frontier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// TestModel drives a Frontier and a real store through anything that can happen and compares with a
// plain map: no URL is lost, none is fetched twice unless its outcome was not committed, none is
// fetched against robots.txt or before it, and no host too early. In the end each URL has a final
// state with a reason. TestSoakModel tries more.
func TestModel(t *testing.T) {
	tries(t, 40)
	rapid.Check(t, func(t *rapid.T) { newModel(t).run() })
}

// model is what the test knows without the frontier.
type model struct {
	*world
	rt     *rapid.T
	store  *storage.Store
	dir    string
	random *rand.Rand

	known       map[string]storage.State // URLs on the disk and their state there
	uncommitted map[string]bool          // fetched, without a committed outcome
	tries       map[string]int
	rules       map[weburl.Origin]*robots.Rules // as last answered to this process, or on the disk when it began
	files       map[weburl.Origin]answer        // what robots.txt is
	names       map[string]int                  // DNS: 0 an address, 1 failure, 2 no such name, 3 out of reach
	healthy     bool
}

const modelHosts = 5

func newModel(t *rapid.T) *model {
	o := testOptions()
	o.Heads = rapid.IntRange(1, 8).Draw(t, "heads")
	o.ActiveHosts = rapid.IntRange(1, 6).Draw(t, "active hosts")
	o.Session = rapid.SampledFrom([]int{0, 1, 8, 3000}).Draw(t, "session")
	o.HostBudget = rapid.SampledFrom([]uint32{0, 0, 7}).Draw(t, "host budget")
	o.DomainBudget = rapid.SampledFrom([]uint32{0, 0, 20}).Draw(t, "domain budget")
	o.Resolvers = rapid.IntRange(1, 3).Draw(t, "resolvers")
	o.RetryDelay = rapid.SampledFrom([]time.Duration{50 * time.Millisecond, 10 * time.Second, time.Hour}).Draw(t,
		"retry delay")
	o.Politeness = rapid.SampledFrom([]politeness.Options{
		{Delay: time.Second, AdaptiveMax: time.Minute, PerHost: 1, PerIP: 4},
		{Delay: time.Second, AdaptiveMax: time.Minute, PerHost: 1, PerIP: 1, IPDelay: 3 * time.Second},
		{Delay: 0, AdaptiveMax: time.Minute, PerHost: 3, PerIP: 4},
	}).Draw(t, "politeness")
	m := &model{
		rt: t, random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
		known: map[string]storage.State{}, uncommitted: map[string]bool{}, tries: map[string]int{},
		files: map[weburl.Origin]answer{}, names: map[string]int{},
	}
	m.world = newWorld(t, o, nil)
	o.Jitter = m.random.Float64
	m.workers = rapid.IntRange(1, 5).Draw(t, "workers")
	m.o.Workers = rapid.SampledFrom([]int{m.workers, m.workers, 0}).Draw(t, "known workers")
	m.commitTime = rapid.SampledFrom([]time.Duration{time.Millisecond, 700 * time.Millisecond,
		5 * time.Second}).Draw(t, "commit time")
	m.loadTime = rapid.SampledFrom([]time.Duration{time.Millisecond, 900 * time.Millisecond, 4 * time.Second}).Draw(t,
		"load time")
	m.noMatch = rapid.Bool().Draw(t, "verdicts by workers")
	m.matchTime = rapid.SampledFrom([]time.Duration{time.Millisecond, 3 * time.Second}).Draw(t, "time of a verdict")
	m.answer, m.resolve = m.serve, m.lookUp
	m.world.started, m.world.completed, m.world.committed = m.begins, m.ends, m.commits
	m.rulesJudged = func(o weburl.Origin, r *robots.Rules) { m.rules[o] = r }
	return m
}

func (m *model) run() {
	m.dir = tempDir(m.rt)
	m.reopen()
	defer func() { m.store.Close() }()
	for range rapid.IntRange(1, 25).Draw(m.rt, "steps") {
		switch rapid.IntRange(0, 9).Draw(m.rt, "step") {
		case 0, 1:
			m.addSome()
		case 2, 3, 4:
			m.world.run(rapid.SampledFrom([]time.Duration{10 * time.Millisecond, time.Second,
				20 * time.Second}).Draw(m.rt, "time"))
		case 5:
			m.world.run(rapid.SampledFrom([]time.Duration{10 * time.Minute, 26 * time.Hour}).Draw(m.rt, "long time"))
		case 6:
			m.changeFile()
		case 7:
			m.names[m.host()] = rapid.IntRange(0, 3).Draw(m.rt, "name")
		case 8:
			m.crash()
			m.store.Close()
			m.reopen()
		case 9:
			m.f.Sweep(m.now)
		}
	}
	m.healthy = true
	clear(m.files)
	clear(m.names)
	m.checkBudgets()
	m.o.HostBudget, m.o.DomainBudget = 0, 0
	m.crash()
	m.store.Close()
	m.reopen()
	m.finish(5000*time.Hour, 1000*time.Hour)
	m.checkManners()
	m.checkEnd()
}

// checkBudgets: no more is fetched than the budgets allow.
func (m *model) checkBudgets() {
	domains := map[string]uint32{}
	m.must(m.store.Hosts(func(h *storage.Host) error {
		n := h.Of(storage.Fetched)
		if budget := m.o.HostBudget; budget > 0 && n > budget {
			m.rt.Errorf("%d pages of %s are fetched, its budget is %d", n, h.Name, budget)
		}
		domains[weburl.RegistrableDomain(h.Name)] += n
		return nil
	}))
	for name, n := range domains {
		if budget := m.o.DomainBudget; budget > 0 && n > budget {
			m.rt.Errorf("%d pages of the domain %s are fetched, its budget is %d", n, name, budget)
		}
	}
}

func (m *model) reopen() {
	s, err := storage.Open(m.dir, storage.Options{NoSync: true, MapBytes: 1 << 24})
	m.must(err)
	m.store, m.disk = s, s
	clear(m.uncommitted)
	m.rules = map[weburl.Origin]*robots.Rules{}
	for _, o := range m.origins() {
		encoded, err := s.Policy(o)
		m.must(err)
		if len(encoded) > 0 {
			record, err := robots.DecodeRecord(encoded)
			m.must(err)
			m.rules[o] = record.Rules(m.o.Tokens...)
		}
	}
	m.open()
}

func (m *model) host() string {
	return fmt.Sprintf("h%d.model.test", rapid.IntRange(0, modelHosts-1).Draw(m.rt, "host"))
}

func (m *model) origins() (all []weburl.Origin) {
	for i := range modelHosts {
		host := fmt.Sprintf("h%d.model.test", i)
		all = append(all, weburl.Origin{Scheme: "http", Host: host, Port: 80},
			weburl.Origin{Scheme: "https", Host: host, Port: 443})
	}
	return all
}

func (m *model) anyURL() string {
	o := m.origins()[m.random.IntN(2*modelHosts)]
	return fmt.Sprintf("%s://%s/%s/%d", o.Scheme, o.Host, []string{"open", "closed"}[m.random.IntN(2)],
		m.random.IntN(40))
}

// addSome commits discoveries that did not come from this crawl.
func (m *model) addSome() {
	var b storage.Batch
	priority := rapid.SampledFrom([]int8{0, 0, 0, 5, 90, -3}).Draw(m.rt, "priority")
	for range rapid.IntRange(1, 40).Draw(m.rt, "urls") {
		f := m.found(m.anyURL())
		f.Priority = priority
		b.Found = append(b.Found, f)
	}
	m.commit(b)
	m.commits(&b)
}

func (m *model) changeFile() {
	o := rapid.SampledFrom(m.origins()).Draw(m.rt, "origin")
	m.files[o] = rapid.SampledFrom([]answer{
		{},
		{body: "User-agent: *\nDisallow: /closed\n"},
		{body: "User-agent: *\nCrawl-delay: 7\nDisallow: /closed\n", maxAge: 10 * time.Minute},
		{body: "User-agent: *\nDisallow: /cl*d\n", maxAge: 10 * time.Minute},
		{body: "User-agent: *\nCrawl-delay: 3\nDisallow: /*sed\nAllow: /*x$\n"},
		{body: "User-agent: *\nDisallow: /\n", maxAge: time.Hour},
		{status: 404},
		{status: 500, signal: politeness.SignalServerError},
		{status: 503, signal: politeness.SignalThrottled, retryAfter: 20 * time.Minute},
		{failure: robots.FailureTimeout, signal: politeness.SignalUnreachable},
		{location: "https://h1.model.test/robots.txt"},
		{location: "http://h2.model.test/elsewhere"},
		{location: "http://elsewhere.test/robots.txt"},
	}).Draw(m.rt, "file")
}

// serve is the web.
func (m *model) serve(l Lease) (a answer) {
	a.took = time.Duration(1+m.random.IntN(1500)) * time.Millisecond
	if m.random.IntN(8) == 0 {
		a.took *= 20
	}
	if l.Kind == Robots {
		took := a.took
		a = m.files[l.URL.Origin()]
		a.took = took
	} else if m.random.IntN(2) == 0 {
		a.reading = time.Duration(1+m.random.IntN(4000)) * time.Millisecond
	}
	if m.healthy {
		return a
	}
	switch m.random.IntN(30) {
	case 0:
		return answer{notSent: true, took: a.took}
	case 1:
		return answer{broken: true, took: a.took, reading: a.reading, signal: politeness.SignalAborted}
	}
	if l.Kind == Robots {
		return a
	}
	for range m.random.IntN(3) {
		a.found = append(a.found, m.anyURL())
	}
	switch m.random.IntN(10) {
	case 0:
		a.state, a.reason = storage.Failed, storage.ReasonStatus
	case 1:
		a.state, a.reason, a.signal = storage.Retrying, storage.ReasonStatus, politeness.SignalServerError
	case 2:
		a.state, a.reason, a.signal = storage.Retrying, storage.ReasonFetch, politeness.SignalUnreachable
	case 3:
		a.state, a.reason = storage.Retrying, storage.ReasonStatus
		a.signal, a.retryAfter = politeness.SignalThrottled, time.Minute
	case 4:
		a.state = storage.Redirected
	}
	return a
}

// lookUp is DNS. Hosts 0 to 2 share addresses and move between them.
func (m *model) lookUp(l Lease) ResolveReport {
	switch m.names[l.HostName] {
	case 1:
		return ResolveReport{Reason: storage.ReasonFetch + 1}
	case 2:
		ttl := time.Duration(m.random.IntN(300)) * time.Second
		return ResolveReport{Absent: true, Reason: storage.ReasonFetch + 2, TTL: ttl}
	case 3:
		return ResolveReport{Final: true, Reason: storage.ReasonFetch + 3}
	}
	if !m.healthy && m.random.IntN(20) == 0 {
		return ResolveReport{Aborted: true}
	}
	r := ResolveReport{TTL: time.Duration(m.random.IntN(300)) * time.Second}
	for range 1 + m.random.IntN(2) {
		r.Addresses = append(r.Addresses, addressAt(m.random.IntN(2)))
	}
	if l.Host > 3 {
		r.Addresses = []netip.Addr{addressAt(int(l.Host))}
	}
	return r
}

// begins checks that a request may be made.
func (m *model) begins(l Lease) {
	delay := max(m.o.Politeness.Delay, l.Delay)
	must.True(m.rt, l.Delay < 0 || l.Delay >= m.o.Politeness.Delay, "%s is fetched with a delay of %v", l.URL, l.Delay)
	if l.Kind != Page {
		return
	}
	u := l.URL.String()
	rules := m.rules[l.URL.Origin()]
	switch state, known := m.known[u]; {
	case !known:
		m.rt.Fatalf("%s is fetched and was never added", u)
	case state != storage.Queued && state != storage.Retrying:
		m.rt.Fatalf("%s is fetched and is %v already", u, state)
	case m.uncommitted[u]:
		m.rt.Fatalf("%s is fetched twice", u)
	case rules == nil:
		m.rt.Fatalf("%s is fetched before robots.txt", u)
	case !rules.Match(l.URL.RequestURI()).Allowed:
		m.rt.Fatalf("%s is fetched, robots.txt forbids it", u)
	}
	if wanted, _ := rules.CrawlDelay(); delay < wanted {
		m.rt.Fatalf("%s is fetched with a delay of %v, robots.txt wants %v", u, delay, wanted)
	}
	m.uncommitted[u] = true
}

func (m *model) ends(l Lease, a answer) {
	back := a.notSent || a.broken
	switch {
	case l.Kind == Page && back:
		delete(m.uncommitted, l.URL.String())
	case l.Kind == Page:
		m.tries[l.URL.String()]++
	}
}

// commits takes note of what is on the disk now.
func (m *model) commits(b *storage.Batch) {
	for _, f := range b.Found {
		if _, known := m.known[f.URL.String()]; !known {
			m.known[f.URL.String()] = storage.Queued
		}
	}
	for _, d := range b.Done {
		u, err := m.store.URL(d.Host, d.Ordinal)
		m.must(err)
		before, known := m.known[u.String()]
		must.True(m.rt, known && (before == storage.Queued || before == storage.Retrying),
			"%s has an outcome (%v) after its last (%v)", u, d.Outcome.State, before)
		m.known[u.String()] = d.Outcome.State
		delete(m.uncommitted, u.String())
	}
}

// checkEnd compares the disk with the map.
func (m *model) checkEnd() {
	n := 0
	m.must(m.store.Hosts(func(h *storage.Host) error {
		_, err := m.store.URLs(h.ID, 0, 1<<20, func(head storage.Head) {
			n++
			u := h.Queues[head.Origin].Origin.URL(head.RequestURI).String()
			o := head.Last
			if state, known := m.known[u]; !known || o.State != state {
				m.rt.Errorf("%s is %v on the disk, should be %v", u, o.State, state)
			}
			switch o.State {
			case storage.Queued, storage.Retrying:
				m.rt.Errorf("%s is %v in the end", u, o.State)
			case storage.Failed, storage.Denied, storage.Excluded:
				assert.True(m.rt, o.Reason != storage.ReasonNone && !o.At.IsZero(), "%s is %v without a reason", u,
					o.State)
			default:
				assert.Not(m.rt, m.tries[u], 0, u, "is", o.State, "and was never fetched")
			}
		})
		return err
	}))
	assert.Equal(m.rt, n, len(m.known), "URLs are on the disk were added")
	m.must(m.store.Check(context.Background(), func(f storage.Finding) { m.rt.Error(f.Text) }))
	for state, n := range m.f.hostStates() {
		assert.Equal(m.rt, state, empty, n, "hosts in the end")
	}
}

// tempDir is a directory of one run of the model.
func tempDir(t *rapid.T) string {
	dir := must.Get(os.MkdirTemp("", "frontier-model-*"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
