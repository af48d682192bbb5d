package crawl

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/memnet"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/storage"
)

// clientRun is a crawl whose client decides everything, with a delay of a second.
type clientRun struct {
	*remoteRun
	o Options
}

// clientOptions are those of such a crawl.
func clientOptions(t testing.TB, web *testweb.Web) Options {
	o := testOptions(t, web)
	o.Workers, o.ExitWhenDone, o.IgnoreRobots, o.Mode = 0, false, true, frontier.ModeAny
	o.Frontier.Politeness.Delay = time.Second
	return o
}

// withClient runs a test with such a crawl in virtual time.
func withClient(t *testing.T, test func(t *testing.T, r *clientRun)) {
	withClientOptions(t, func(*Options) {}, test)
}

// withClientOptions is withClient with other options.
func withClientOptions(t *testing.T, set func(*Options), test func(t *testing.T, r *clientRun)) {
	virtually(t, memnet.Options{Latency: time.Millisecond}, func(t *testing.T, network *memnet.Network) {
		web := testweb.Serve(t, testweb.Config{Network: network, Sites: []testweb.Site{site("a.test", "", nil, nil)}})
		r := &clientRun{o: clientOptions(t, web)}
		set(&r.o)
		r.remoteRun = startRemote(t, r.o)
		time.Sleep(time.Millisecond)
		test(t, r)
		r.end()
		assert.AtMost(t, len(web.Requests()), 0, "was requested")
	})
}

// discover puts discoveries.
func (r *clientRun) discover(urls ...string) []PutResult {
	r.t.Helper()
	puts := make([]Put, len(urls))
	for i, u := range urls {
		puts[i].URL = parse(r.t, u)
	}
	return r.put(puts...)
}

// known puts a URL that is due at a time.
func (r *clientRun) known(url string, due time.Time) {
	r.t.Helper()
	assert.Equal(r.t, r.put(Put{URL: parse(r.t, url), Known: true, Due: due})[0], PutAccepted, "a put of", url)
}

func (r *clientRun) put(puts ...Put) []PutResult {
	r.t.Helper()
	return must.Get(r.Put(r.t.Context(), puts))(r.t)
}

// get takes leases without waiting, and returns their URLs.
func (r *clientRun) get(request remote.Request) []string {
	r.t.Helper()
	request.Fetcher = "client"
	if request.N == 0 {
		request.N = 100
	}
	if request.PerHost == 0 {
		request.PerHost = 10
	}
	leases := must.Get(r.Lease(r.t.Context(), request))(r.t)
	urls := make([]string, len(leases))
	for i := range leases {
		urls[i] = leases[i].URL.String()
	}
	return urls
}

// expect checks what is leased now, in its order.
func (r *clientRun) expect(request remote.Request, want ...string) {
	r.t.Helper()
	assert.Slice(r.t, r.get(request), want, "leased")
}

// TestPutResults: each put has its result, in the order of the puts; of equal discoveries the first
// is accepted.
func TestPutResults(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		long := storage.Metadata{"a": {strings.Repeat("x", storage.MaxMetadata)}}
		got := r.put(
			Put{URL: parse(t, "http://a.test/1")}, Put{URL: parse(t, "http://b.test/1")},
			Put{URL: parse(t, "http://a.test/1")},
			Put{URL: parse(t, "http://a.test/2"), Metadata: long}, Put{URL: parse(t, "http://a.test/2"), Known: true},
			Put{URL: parse(t, "http://a.test/2")}, Put{URL: parse(t, "http://a.test/1"), Known: true},
			Put{URL: parse(t, "https://a.test/1"), Known: true, Due: time.Now().Add(time.Hour)},
		)
		want := []PutResult{PutAccepted, PutAccepted, PutKnown, PutInvalid, PutAccepted, PutKnown, PutAccepted,
			PutAccepted}
		assert.Slice(t, got, want, "the results")
		if got := r.discover("http://b.test/1", "http://c.test/"); got[0] != PutKnown || got[1] != PutAccepted {
			t.Errorf("the results are %v, want known and accepted", got)
		}
		r.expect(remote.Request{Host: "a.test"})
	})
}

// TestHeldURLIsNoSlowHost: for how long a client has a URL says nothing about its host. The adaptive delay is 0
// where nobody says how long the request took, whether the URL is put, given back or runs out.
func TestHeldURLIsNoSlowHost(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *clientRun, l *remote.Lease){
		"put": func(r *clientRun, l *remote.Lease) { r.known(l.URL.String(), time.Time{}) },
		"reported": func(r *clientRun, l *remote.Lease) {
			r.report(remote.Report{Fetcher: "client", ID: l.ID, Status: 200}, remote.Accepted)
		},
		"given back": func(r *clientRun, l *remote.Lease) {
			r.report(remote.Report{Fetcher: "client", ID: l.ID, NotDone: true, Sent: true}, remote.Accepted)
		},
		"run out": func(r *clientRun, l *remote.Lease) { time.Sleep(time.Until(l.Deadline)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withClientOptions(t, func(o *Options) { o.Frontier.Politeness.AdaptiveFactor = 1 },
				func(t *testing.T, r *clientRun) {
					r.discover("http://a.test/1", "http://a.test/2")
					l := r.lease(remote.Request{Fetcher: "client", N: 1, Visibility: time.Minute})[0]
					time.Sleep(50 * time.Second)
					end(r, &l)
					time.Sleep(1100 * time.Millisecond) // the delay
					assert.Equal(t, len(r.get(remote.Request{N: 1})), 1, "URLs after the delay of a second")
				})
		})
	}
}

// TestPutLarge: a put longer than a group is taken in as a whole, and keeps the order of its results.
func TestPutLarge(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		var urls []string
		for i := range 3*maxGroupPuts + 7 {
			// more than amble follows of one path itself
			urls = append(urls, fmt.Sprintf("http://h.test/path?q=%d", i/2))
		}
		known := make(map[string]bool)
		for i, result := range r.discover(urls...) {
			must.True(t, (result == PutKnown) == known[urls[i]], "the result of the %d-th is %s", i, result)
			known[urls[i]] = true
		}
	})
}

// TestPutKnown: a known URL is due when the client says, whatever was known of it before, and whether
// it is in memory or not.
func TestPutKnown(t *testing.T) {
	t.Parallel()
	const u, v, w = "http://a.test/u", "http://a.test/v", "http://a.test/w"
	earlier := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	for name, test := range map[string]func(t *testing.T, r *clientRun){
		"never again": func(t *testing.T, r *clientRun) {
			r.known(u, time.Time{})
			r.expect(remote.Request{Wait: time.Hour})
		},
		"the earlier one first": func(t *testing.T, r *clientRun) {
			r.known(u, earlier(time.Minute))
			r.known(v, earlier(time.Hour))
			r.expect(remote.Request{}, v, u)
		},
		"later": func(t *testing.T, r *clientRun) {
			r.known(u, time.Now().Add(time.Hour))
			r.expect(remote.Request{Wait: 59 * time.Minute})
			r.expect(remote.Request{Wait: 2 * time.Minute}, u)
		},
		"a discovery is completed while it is in memory": func(t *testing.T, r *clientRun) {
			r.discover(u, v, w)
			r.expect(remote.Request{PerHost: 1}, u)
			r.known(v, time.Time{})
			time.Sleep(2 * time.Second)
			r.expect(remote.Request{}, w)
			r.expect(remote.Request{Wait: 50 * time.Second})
		},
		"a due one is postponed while it is in memory": func(t *testing.T, r *clientRun) {
			r.known(u, earlier(3*time.Second))
			r.known(v, earlier(2*time.Second))
			r.known(w, earlier(time.Second))
			r.expect(remote.Request{PerHost: 1}, u)
			r.known(v, time.Now().Add(20*time.Second))
			time.Sleep(2 * time.Second)
			r.expect(remote.Request{}, w)
			r.expect(remote.Request{Wait: 15 * time.Second})
			r.expect(remote.Request{Wait: 5 * time.Second}, v)
		},
		"one in memory gets another place": func(t *testing.T, r *clientRun) {
			r.known(u, earlier(3*time.Second))
			r.known(v, earlier(2*time.Second))
			r.discover(w)
			r.expect(remote.Request{PerHost: 1, Visibility: time.Hour}, u)
			r.known(w, earlier(time.Hour))
			r.known(u, time.Time{})
			time.Sleep(2 * time.Second)
			r.expect(remote.Request{}, w, v)
		},
		"completed, and due again": func(t *testing.T, r *clientRun) {
			r.known(u, time.Time{})
			r.known(u, earlier(time.Second))
			r.expect(remote.Request{}, u)
		},
		"a discovery of a completed one": func(t *testing.T, r *clientRun) {
			r.known(u, time.Time{})
			assert.Equal(t, r.discover(u)[0], PutKnown)
			r.expect(remote.Request{Wait: time.Hour})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withClient(t, test)
		})
	}
}

// TestPutMetadata: a lease has the metadata of its URL. A known put replaces them, a discovery does
// not.
func TestPutMetadata(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		u, earlier := parse(t, "http://a.test/"), time.Now().Add(-time.Hour)
		for i, step := range []struct {
			put  Put
			want string
		}{
			{Put{URL: u, Metadata: storage.Metadata{"a": {"1", "2"}}}, "map[a:[1 2]]"},
			{Put{URL: u, Known: true, Due: earlier, Metadata: storage.Metadata{"b": {}}}, "map[b:[]]"},
			{Put{URL: u, Metadata: storage.Metadata{"c": {"3"}}}, "map[b:[]]"},
			{Put{URL: u, Known: true, Due: earlier}, "map[]"},
		} {
			r.put(step.put)
			leases, err := r.Lease(t.Context(), remote.Request{Fetcher: "x", N: 1, Wait: 2 * time.Minute})
			must.True(t, err == nil && len(leases) == 1 && fmt.Sprint(leases[0].Metadata) == step.want,
				"step %d: leased %+v, %v, want metadata %s", i, leases, err, step.want)
		}
	})
}

// TestPutEndsLease: a known put ends the lease of its URL, whoever has it, and the delay of its host
// begins. A report of that lease comes too late.
func TestPutEndsLease(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		r.discover("http://a.test/1", "http://a.test/2", "http://a.test/3")
		request := remote.Request{Fetcher: "x", N: 10, PerHost: 1, Visibility: time.Hour}
		first := r.lease(request)
		must.True(t, len(first) == 1, "%d leases, want 1", len(first))
		r.expect(remote.Request{PerHost: 1, Wait: time.Minute})
		assert.Equal(t, r.put(Put{URL: first[0].URL, Known: true, Fetcher: "another"})[0], PutAccepted, "the put")
		ended := time.Now()
		r.report(remote.Report{Fetcher: "x", ID: first[0].ID, Status: 200}, remote.Late)
		r.expect(remote.Request{PerHost: 1, Wait: 900 * time.Millisecond})
		r.expect(remote.Request{PerHost: 1, Wait: time.Minute}, "http://a.test/2")
		assert.Equal(t, time.Since(ended), time.Second, "the next lease came after the put")
	})
}

// TestBatches: a crawl that ignores robots.txt hands out as many URLs of a host at a time as are
// wanted, and no others until its delay is over.
func TestBatches(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		var urls []string
		for i := range 9 {
			urls = append(urls, fmt.Sprintf("http://a.test/%d", i))
		}
		r.discover(urls...)
		r.discover("http://b.test/0", "http://b.test/1")
		start := time.Now()
		r.expect(remote.Request{Host: "a.test", PerHost: 2}, urls[:2]...)
		r.expect(remote.Request{Host: "a.test", PerHost: 4})
		r.expect(remote.Request{Hosts: 1, PerHost: 1}, "http://b.test/0")
		r.expect(remote.Request{Host: "a.test", PerHost: 4, Wait: time.Minute}, urls[2:4]...) // four are in flight
		assert.Equal(t, time.Since(start), time.Second, "the second batch came after")
		time.Sleep(5 * time.Second)
		r.expect(remote.Request{Host: "a.test", PerHost: 4})
		r.known(urls[0], time.Time{})
		r.expect(remote.Request{Host: "a.test", PerHost: 4})
		time.Sleep(time.Second)
		r.expect(remote.Request{Host: "a.test", PerHost: 4}, urls[4])
	})
}

// TestPutWhileReported: a put of a URL whose report is being worked on decides about the URL.
func TestPutWhileReported(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		r.discover("http://a.test/1")
		l := r.lease(remote.Request{Fetcher: "x", N: 1})[0]
		c := &claims{all: []claim{r.newClaim(&remote.Report{Fetcher: "x", ID: l.ID, Status: 404})},
			done: make(chan struct{})}
		must.Do(t, r.mailbox.Load().call(t.Context(), func(d *dispatcher) { d.claim(c) }))
		r.known(l.URL.String(), time.Now().Add(time.Hour))
		res := c.all[0].res
		r.lender.Load().ServeReport(res, c.all[0].report)
		r.lender.Load().results <- completion{res}
		must.Do(t, <-c.all[0].committed)
		r.expect(remote.Request{Wait: 59 * time.Minute})
		r.expect(remote.Request{Wait: 2 * time.Minute}, l.URL.String())
	})
}

// TestPutTogether: puts of many goroutines share commits, and each has its own results.
func TestPutTogether(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		var wg sync.WaitGroup
		for n := range 30 {
			wg.Go(func() {
				for i := range 10 {
					urls := []string{fmt.Sprintf("http://h%d.test/%d", n, i), fmt.Sprintf("http://h%d.test/%d", n, i),
						"http://all.test/"}
					got := r.discover(urls...)
					assert.True(t, got[0] == PutAccepted && got[1] == PutKnown, "the results are %v", got)
				}
			})
		}
		wg.Wait()
		assert.Equal(t, r.store.Counters().URLs, 301, "URLs")
	})
}

// TestIgnoreRobotsNeedsFetchers: a crawl that ignores robots.txt has no workers of its own, also
// later.
func TestIgnoreRobotsNeedsFetchers(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		o := r.o
		o.Workers = 1
		assert.True(t, o.Validate() != nil, "a worker that ignores robots.txt is accepted")
		live := r.o.Live()
		live.Workers = 1
		assert.True(t, r.Change(t.Context(), live) != nil, "a worker that ignores robots.txt is accepted later")
	})
}

// TestPutHoldsURL: from when a known put is taken in until it is on disk, its URL is not leased by what
// was known of it before.
func TestPutHoldsURL(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		const u, v = "http://a.test/u", "http://a.test/v"
		r.discover(u, v)
		time.Sleep(time.Second) // its queue is read
		m := r.mailbox.Load()
		groups, err := r.groupPuts(m, []Put{{URL: parse(t, u), Known: true, Due: time.Now().Add(-time.Hour)}},
			make([]PutResult, 1))
		must.True(t, err == nil && len(groups) == 1, "%d groups, %v", len(groups), err)
		wait := &leaseWait{request: remote.Request{Fetcher: "x", N: 5, PerHost: 5, Visibility: time.Hour},
			done: make(chan struct{})}
		err = m.call(t.Context(), func(d *dispatcher) {
			d.takePuts(groups[0])
			d.lend(wait)
		})
		must.True(t, err == nil && len(wait.given) == 1 && wait.given[0].remote.URL == v,
			"%d leases before the commit, %v, want that of %s", len(wait.given), err, v)
		must.Do(t, <-groups[0].done)
		r.expect(remote.Request{Wait: time.Minute}, u)
	})
}

// TestSameSecond: times of outcomes are stored in seconds. A lease of the second in which its URL was
// put outlasts kill -9 all the same, and does not when another put has ended it in that second.
func TestSameSecond(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		const url = "http://a.test/"
		must.Do(t, r.SetDefaultDelay(t.Context(), 0))
		take := remote.Request{PerHost: 3, Visibility: time.Hour}
		for n := range 3 {
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			second, other := time.Now().Unix(), fmt.Sprintf("http://b.test/%d", n)
			r.discover(other)
			r.expect(take, other) // as long as it is out, the start ledger is read from its line on
			r.known(url, time.Now().Add(-time.Hour))
			r.expect(take, url)
			r.known(url, time.Now().Add(-time.Minute))
			r.kill()
			r.expect(take, url)
			r.kill()
			now := time.Now().Unix()
			must.True(t, now == second, "it took %d s", now-second)
			r.expect(take)
			r.known(url, time.Now().Add(-time.Hour))
			r.expect(take, url)
			time.Sleep(3 * time.Second) // the lease gets a mark
			r.kill()
			r.expect(take)
		}
	})
}
