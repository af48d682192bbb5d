package crawl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// putModel is what a crawl whose clients decide everything should do, as plain maps. It drives the
// crawl and compares.
type putModel struct {
	t      *testing.T
	r      *clientRun
	urls   map[string]*putURL
	hosts  map[string]*putHost
	delay  time.Duration // of hosts without one of their own
	active bool
}

// putURL is what the model knows of a URL.
type putURL struct {
	host      string
	completed bool
	due       time.Time // rounded up to seconds
	metadata  string
	until     time.Time // the deadline of its lease; zero: nobody has it
}

// putHost is what the model knows of a host.
type putHost struct {
	QueueSettings
	key             string    // of its queue; empty: its name
	produced, ended time.Time // when its last batch was given out, and when its last lease ended
}

// hasURLs reports whether a host has URLs: else it has no settings.
func (m *putModel) hasURLs(host string) bool {
	for _, u := range m.urls {
		if u.host == host {
			return true
		}
	}
	return false
}

// expire ends the leases whose deadline has passed.
func (m *putModel) expire() {
	for _, u := range m.urls {
		if !u.until.IsZero() && !time.Now().Before(u.until) {
			m.end(u, u.until)
		}
	}
}

func (m *putModel) end(u *putURL, at time.Time) {
	if h := m.hosts[u.host]; at.After(h.ended) {
		h.ended = at
	}
	u.until = time.Time{}
}

// draw draws a URL.
func (m *putModel) draw(rt *rapid.T) (url, host string) {
	host = rapid.SampledFrom([]string{"a.test", "b.test", "c.test"}).Draw(rt, "host")
	return fmt.Sprintf("http://%s/%d", host, rapid.IntRange(0, 5).Draw(rt, "path")), host
}

// key draws the key of a put: the client does not say, the host, or one that is no host. It is that of the queue of the
// host from then on.
func (m *putModel) key(rt *rapid.T, host string) string {
	key := rapid.SampledFrom([]string{"", host, "queue of " + host}).Draw(rt, "key")
	if key != "" {
		m.hosts[host].key = key
	}
	return key
}

// Discover puts discoveries in one batch.
func (m *putModel) Discover(rt *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(rt, "n")
	puts, want := make([]Put, n), make([]PutResult, n)
	for i := range puts {
		url, host := m.draw(rt)
		puts[i] = Put{URL: parse(m.t, url), Key: m.key(rt, host), Metadata: storage.Metadata{"found": {url}}}
		if m.urls[url] != nil {
			want[i] = PutKnown
			continue
		}
		m.urls[url] = &putURL{host: host, metadata: fmt.Sprint(puts[i].Metadata)}
	}
	if got := m.r.put(puts...); !slices.Equal(got, want) {
		rt.Fatalf("the results are %v, want %v", got, want)
	}
}

// Known puts a known URL: completed, due or due later.
func (m *putModel) Known(rt *rapid.T) {
	url, host := m.draw(rt)
	p := Put{URL: parse(m.t, url), Key: m.key(rt, host), Known: true, Fetcher: "another"}
	if rapid.IntRange(0, 2).Draw(rt, "due") > 0 {
		p.Due = time.Now().Add(seconds(rapid.IntRange(-100, 100).Draw(rt, "in")))
		p.Metadata = storage.Metadata{"due": {p.Due.String()}}
	}
	m.expire()
	u := m.urls[url]
	if u == nil {
		u = &putURL{host: host}
		m.urls[url] = u
	}
	if !u.until.IsZero() {
		m.end(u, time.Now())
	}
	u.completed, u.due, u.metadata = p.Due.IsZero(), p.Due.Add(time.Second-1).Truncate(time.Second),
		fmt.Sprint(p.Metadata)
	m.r.put(p)
	time.Sleep(time.Duration(rapid.IntRange(0, 1200).Draw(rt, "milliseconds")) * time.Millisecond)
}

// Set changes settings of a host.
func (m *putModel) Set(rt *rapid.T) {
	host := rapid.SampledFrom([]string{"a.test", "b.test", "c.test"}).Draw(rt, "host")
	if !m.hasURLs(host) {
		rt.Skip("it has no URLs")
	}
	h := m.hosts[host]
	change := rapid.IntRange(0, 2).Draw(rt, "what")
	n := rapid.IntRange(0, 5).Draw(rt, "n")
	m.r.set(host, func(s *QueueSettings) {
		if s.Limit != h.Limit || (s.Delay == nil) != (h.Delay == nil) || s.Delay != nil && *s.Delay != *h.Delay ||
			!s.BlockedUntil.Equal(h.BlockedUntil) && time.Now().Before(h.BlockedUntil) {
			rt.Errorf("the settings of %s are %+v, want %+v", host, *s, h.QueueSettings)
		}
		switch change {
		case 0:
			h.Limit = uint64(n)
		case 1:
			if h.Delay = nil; n > 0 {
				h.Delay = duration(time.Duration(n-1) * 1500 * time.Millisecond)
			}
		case 2:
			h.BlockedUntil = time.Now().Add(seconds(20 * (n - 1))).Truncate(time.Second)
		}
		*s = h.QueueSettings
	})
}

// SetAll changes the default delay, or whether leases are given.
func (m *putModel) SetAll(rt *rapid.T) {
	var err error
	if rapid.Bool().Draw(rt, "delay") {
		m.delay = seconds(rapid.IntRange(0, 4).Draw(rt, "seconds"))
		err = m.r.SetDefaultDelay(m.t.Context(), m.delay)
	} else {
		m.active = rapid.Bool().Draw(rt, "active")
		err = m.r.SetActive(m.t.Context(), m.active)
	}
	must.Do(rt, err)
}

// Get takes leases, and checks each.
func (m *putModel) Get(rt *rapid.T) {
	m.get(rt, remote.Request{
		Fetcher: "client", N: rapid.IntRange(1, 8).Draw(rt, "n"), PerHost: rapid.IntRange(1, 4).Draw(rt, "per host"),
		Hosts: rapid.IntRange(0, 2).Draw(rt, "hosts"), Wait: seconds(rapid.IntRange(0, 5).Draw(rt, "wait")),
		Visibility: seconds(rapid.IntRange(1, 40).Draw(rt, "visibility")),
	})
}

func (m *putModel) get(rt *rapid.T, request remote.Request) []remote.Lease {
	leases, err := m.r.Lease(m.t.Context(), request)
	if err != nil || len(leases) > request.N || len(leases) > 0 && !m.active {
		rt.Fatalf("%d leases of %d, %v; active: %v", len(leases), request.N, err, m.active)
	}
	m.expire()
	got := make(map[string]int)
	for i := range leases {
		l := &leases[i]
		u := m.urls[l.URL.String()]
		switch {
		case u == nil || u.completed || l.Given.Before(u.due):
			rt.Fatalf("%s was leased, and it is %+v", l.URL, u)
		case !u.until.IsZero():
			rt.Fatalf("%s was leased, which is leased until %v", l.URL, u.until)
		case fmt.Sprint(l.Metadata) != u.metadata:
			rt.Fatalf("%s has metadata %v, want %s", l.URL, l.Metadata, u.metadata)
		case l.Key != cmp.Or(m.hosts[u.host].key, u.host):
			rt.Fatalf("%s is in the queue %q, want %q", l.URL, l.Key, m.hosts[u.host].key)
		}
		if got[u.host]++; got[u.host] == 1 {
			m.checkHost(rt, u.host, l.Given)
		}
		u.until = l.Deadline
	}
	for host := range got {
		m.hosts[host].produced = leases[0].Given
		n := 0
		for _, u := range m.urls {
			if u.host == host && !u.until.IsZero() {
				n++
			}
		}
		must.True(rt, n <= request.PerHost, "%d URLs of %s are leased, want %d at most", n, host, request.PerHost)
	}
	must.True(rt, request.Hosts <= 0 || len(got) <= request.Hosts, "%d hosts, want %d at most", len(got), request.Hosts)
	return leases
}

// checkHost checks that a host may be leased from.
func (m *putModel) checkHost(rt *rapid.T, host string, at time.Time) {
	h := m.hosts[host]
	delay, completed := m.delay, uint64(0)
	if h.Delay != nil {
		delay = *h.Delay
	}
	for _, u := range m.urls {
		if u.host == host && u.completed {
			completed++
		}
	}
	switch {
	case at.Before(h.BlockedUntil):
		rt.Fatalf("%s is blocked until %v", host, h.BlockedUntil)
	case h.Limit > 0 && completed >= h.Limit:
		rt.Fatalf("%s has its limit of %d", host, h.Limit)
	case !h.produced.IsZero() && at.Sub(h.produced) < delay || !h.ended.IsZero() && at.Sub(h.ended) < delay:
		rt.Fatalf("%s has a delay of %v: it was leased %v after its last batch and %v after its last end", host, delay,
			at.Sub(h.produced), at.Sub(h.ended))
	}
}

// Sleep lets time pass.
func (m *putModel) Sleep(rt *rapid.T) {
	time.Sleep(time.Duration(rapid.IntRange(100, 30_000).Draw(rt, "milliseconds")) * time.Millisecond)
}

// Restart ends the process and starts another one.
func (m *putModel) Restart(*rapid.T) { m.r.restart() }

// Kill goes on with what the disk has at this moment, as after kill -9.
func (m *putModel) Kill(*rapid.T) { m.r.kill() }

// kill goes on with what the disk has at this moment.
func (r *clientRun) kill() {
	r.t.Helper()
	r.o.DataDir = copyOfDisk(r.t, r.o.DataDir, r.end)
	r.remoteRun = startRemote(r.t, r.o)
	time.Sleep(time.Millisecond)
}

// longestHeld bounds when the last URL is due, or its lease ends.
const longestHeld = 150 * time.Second

// finish ends all that holds URLs, completes them, and compares what the crawl knows. For how long clients have held
// URLs makes no host slow.
func (m *putModel) finish(rt *rapid.T) {
	m.active, m.delay = true, 0
	start := time.Now()
	must.Do(rt, m.r.SetActive(m.t.Context(), true))
	must.Do(rt, m.r.SetDefaultDelay(m.t.Context(), 0))
	stats := QueueStats{}
	for name, h := range m.hosts {
		if h.QueueSettings = (QueueSettings{}); m.hasURLs(name) {
			m.r.set(name, func(s *QueueSettings) { *s = QueueSettings{} })
			stats.Queues++
		}
	}
	for range 500 {
		left := 0
		for _, url := range slices.Sorted(maps.Keys(m.urls)) {
			if !m.urls[url].completed {
				left++
			}
		}
		if left == 0 {
			break
		}
		for _, l := range m.get(rt, remote.Request{Fetcher: "client", N: 5, PerHost: 9, Wait: 5 * time.Minute}) {
			u := m.urls[l.URL.String()]
			m.end(u, time.Now())
			u.completed, u.metadata = true, "map[]"
			m.r.put(Put{URL: l.URL, Known: true})
		}
	}
	assert.AtMost(rt, time.Since(start), longestHeld, "the rest took")
	for url, u := range m.urls {
		stats.Completed++
		s, err := m.r.URLStatus(m.t.Context(), parse(m.t, url))
		assert.True(rt, err == nil && s.Completed && fmt.Sprint(s.Metadata) == u.metadata,
			"%s is %+v, %v; want it completed, with metadata %s", url, s, err, u.metadata)
	}
	assert.Returns(m.r.QueueStats(m.t.Context(), ""))(rt, stats, "the numbers")
}

// TestHeavyPutModel puts, leases and sets at random, with restarts and kills between, and compares all of
// it with plain maps. TestSoakPutModel does the same for longer.
func TestHeavyPutModel(t *testing.T) { checkPutModel(t, 12) }

func checkPutModel(t *testing.T, n int) {
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		checkTimes(t, n, func(rt *rapid.T) {
			o := clientOptions(t, web)
			o.Frontier.Politeness.Delay, o.Frontier.Politeness.AdaptiveFactor = modelDelay, 1
			m := &putModel{
				t: t, r: &clientRun{o: o, remoteRun: startRemote(t, o)}, urls: make(map[string]*putURL),
				hosts: map[string]*putHost{"a.test": {}, "b.test": {}, "c.test": {}}, delay: modelDelay, active: true,
			}
			time.Sleep(time.Millisecond)
			rt.Repeat(map[string]func(*rapid.T){
				"discover": m.Discover, "discover more": m.Discover, "known": m.Known, "get": m.Get, "get more": m.Get,
				"set": m.Set, "set all": m.SetAll, "sleep": m.Sleep, "restart": m.Restart, "kill": m.Kill,
			})
			m.finish(rt)
			m.r.end()
		})
	})
}
