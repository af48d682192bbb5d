package crawl

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// set changes the settings of a host.
func (r *clientRun) set(host string, change func(*QueueSettings)) {
	r.t.Helper()
	must.Do(r.t, r.SetQueue(r.t.Context(), host, change))
}

// restart ends the process and starts another one.
func (r *clientRun) restart() {
	r.t.Helper()
	r.end()
	r.remoteRun = startRemote(r.t, r.o)
	time.Sleep(time.Millisecond)
}

func duration(d time.Duration) *time.Duration { return &d }

// TestHeavyQueueSettings: settings of a host are in force at once, whether the host is in memory or not,
// and over restarts.
func TestHeavyQueueSettings(t *testing.T) {
	t.Parallel()
	urls := []string{"http://a.test/0", "http://a.test/1", "http://a.test/2"}
	one := remote.Request{Host: "a.test", PerHost: 1, Visibility: time.Hour}
	wait := func(d time.Duration) remote.Request { w := one; w.Wait = d; return w }
	between := map[string]func(r *clientRun){
		"in memory": func(*clientRun) {},
		"dormant":   func(*clientRun) { time.Sleep(10 * time.Minute) },
		"restarted": func(r *clientRun) { r.restart() },
	}
	tests := map[string]func(t *testing.T, r *clientRun, between func()){
		"blocked": func(t *testing.T, r *clientRun, between func()) {
			r.set("a.test", func(s *QueueSettings) { s.BlockedUntil = time.Now().Add(time.Hour) })
			between()
			r.expect(wait(time.Minute))
			r.set("a.test", func(s *QueueSettings) {
				assert.True(t, !s.BlockedUntil.IsZero(), "the block is not in the settings")
				s.BlockedUntil = time.Time{}
			})
			r.expect(one, urls[0])
		},
		"a block ends": func(t *testing.T, r *clientRun, between func()) {
			end := time.Now().Add(20 * time.Minute).Truncate(time.Second)
			r.set("a.test", func(s *QueueSettings) { s.BlockedUntil = end })
			between()
			r.expect(wait(time.Until(end) - time.Millisecond))
			r.expect(wait(time.Minute), urls[0])
		},
		"a longer delay": func(t *testing.T, r *clientRun, between func()) {
			r.expect(one, urls[0])
			r.known(urls[0], time.Time{})
			ended := time.Now()
			r.set("a.test", func(s *QueueSettings) { s.Delay = duration(time.Hour) })
			between()
			r.expect(wait(59*time.Minute - time.Since(ended)))
			r.expect(wait(2*time.Minute), urls[1])
		},
		"a delay of half a second": func(t *testing.T, r *clientRun, between func()) {
			r.set("a.test", func(s *QueueSettings) { s.Delay = duration(500 * time.Millisecond) })
			between()
			r.expect(one, urls[0])
			r.known(urls[0], time.Time{})
			start := time.Now()
			r.expect(wait(time.Minute), urls[1])
			assert.Equal(t, time.Since(start), 500*time.Millisecond, "the next one came after")
		},
		"no delay, and that of the crawl again": func(t *testing.T, r *clientRun, between func()) {
			r.set("a.test", func(s *QueueSettings) { s.Delay = duration(0) })
			between()
			for i := range 2 {
				r.expect(one, urls[i])
				r.known(urls[i], time.Time{})
			}
			r.set("a.test", func(s *QueueSettings) {
				assert.True(t, s.Delay != nil && *s.Delay == 0, "the delay in the settings is %v", s.Delay)
				s.Delay = nil
			})
			r.expect(one)
			r.expect(wait(time.Minute), urls[2])
		},
		"limit": func(t *testing.T, r *clientRun, between func()) {
			r.set("a.test", func(s *QueueSettings) { s.Limit = 1 })
			r.expect(one, urls[0])
			r.known(urls[0], time.Time{})
			between()
			r.expect(wait(time.Hour))
			r.set("a.test", func(s *QueueSettings) { s.Limit++ })
			r.expect(one, urls[1])
			r.known(urls[1], time.Now().Add(time.Second)) // it is not completed
			r.expect(wait(time.Second), urls[2])
			r.known(urls[1], time.Time{})
			r.known(urls[2], time.Now())
			r.expect(wait(time.Hour))
			r.set("a.test", func(s *QueueSettings) { s.Limit = 0 })
			r.expect(one, urls[2])
		},
		"several at once": func(t *testing.T, r *clientRun, between func()) {
			r.set("a.test", func(s *QueueSettings) {
				s.BlockedUntil, s.Delay, s.Limit = time.Now().Add(15*time.Minute), duration(time.Minute), 7
			})
			between()
			s, err := r.Queue("a.test")
			assert.True(t, err == nil && !s.BlockedUntil.IsZero() && s.Delay != nil && *s.Delay == time.Minute &&
				s.Limit == 7, "the settings are %+v, %v", s, err)
			r.expect(wait(time.Minute))
			r.expect(wait(time.Hour), urls[0])
			r.known(urls[0], time.Time{})
			r.expect(wait(59 * time.Second))
			r.expect(wait(time.Minute), urls[1])
		},
		"default delay": func(t *testing.T, r *clientRun, between func()) {
			must.Do(t, r.SetDefaultDelay(t.Context(), 10*time.Minute))
			between()
			r.expect(one, urls[0])
			r.known(urls[0], time.Time{})
			live := r.o.Live()
			if err := r.Change(t.Context(), live); err != nil { // the settings are read again
				t.Fatal(err)
			}
			r.expect(wait(599 * time.Second))
			r.expect(wait(2*time.Second), urls[1])
		},
		"inactive": func(t *testing.T, r *clientRun, between func()) {
			if err := r.SetActive(t.Context(), false); err != nil || r.Active() {
				t.Fatalf("active: %v, %v", r.Active(), err)
			}
			between()
			r.expect(wait(time.Minute))
			assert.Equal(t, r.discover("http://b.test/")[0], PutAccepted, "a put")
			if err := r.SetActive(t.Context(), true); err != nil || !r.Active() {
				t.Fatalf("active: %v, %v", r.Active(), err)
			}
			r.expect(one, urls[0])
		},
	}
	for name, test := range tests {
		for when, wait := range between {
			t.Run(name+"/"+when, func(t *testing.T) {
				t.Parallel()
				withClient(t, func(t *testing.T, r *clientRun) {
					r.discover(urls...)
					test(t, r, func() { wait(r) })
				})
			})
		}
	}
}

// TestQueueSettingsUnknown: a host without URLs has no settings.
func TestQueueSettingsUnknown(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		set := func() error { return r.SetQueue(t.Context(), "a.test", func(s *QueueSettings) { s.Limit = 1 }) }
		assert.Is(t, set(), inspect.ErrUnknown, "settings of an unknown host")
		r.discover("http://a.test/")
		assert.NoError(t, set())
		must.Get(r.Delete(t.Context(), Deletion{Host: "a.test"}))(t)
		assert.Is(t, set(), inspect.ErrUnknown, "settings of a deleted host")
	})
}

// TestQueueLists: hosts and URLs are listed and counted in pages.
func TestQueueLists(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		var hosts []string
		for i := range 600 {
			hosts = append(hosts, fmt.Sprintf("h%03d.test", i))
			r.discover("http://"+hosts[i]+"/A", "http://"+hosts[i]+"/b")
		}
		due := time.Now().Add(time.Hour).Truncate(time.Second)
		r.put(Put{URL: parse(t, "http://h000.test/b"), Known: true, Due: due, Metadata: storage.Metadata{"k": {"v"}}})
		r.known("http://h001.test/A", time.Time{})
		r.known("http://h001.test/b", time.Time{})
		r.set("h002.test", func(s *QueueSettings) { s.BlockedUntil = time.Now().Add(time.Hour) })
		active := append([]string{hosts[0]}, hosts[3:]...)
		for _, test := range []struct {
			q    QueueQuery
			want []string
		}{
			{QueueQuery{}, active}, {QueueQuery{IncludeInactive: true}, hosts}, {QueueQuery{Size: 2}, active[:2]},
			{QueueQuery{Start: 550, Size: 10}, active[550:560]}, {QueueQuery{Start: 596, Size: 10}, active[596:]},
			{QueueQuery{Start: 600, IncludeInactive: true}, nil},
		} {
			if got, err := r.ListQueues(t.Context(), test.q); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%+v: %v, %v, want %v", test.q, got, err, test.want)
			}
		}
		for _, test := range []struct {
			q    URLQuery
			want string
		}{
			{URLQuery{Host: "h000.test"}, "A b"}, {URLQuery{Host: "h000.test", Start: 1}, "b"},
			{URLQuery{Host: "h000.test", Size: 1}, "A"}, {URLQuery{Host: "h000.test", Filter: "/a"}, ""},
			{URLQuery{Host: "h000.test", Filter: "/a", IgnoreCase: true}, "A"}, {URLQuery{Host: "none.test"}, ""},
			{URLQuery{Filter: "h01", Start: 1, Size: 3}, "b A b"},
		} {
			var got []string
			err := r.ListURLs(t.Context(), test.q, func(u weburl.URL, s URLStatus) error {
				got = append(got, u.RequestURI()[1:])
				assert.Equal(t, u.String() == "http://h000.test/b", (len(s.Metadata) == 1), u, "has metadata",
					s.Metadata)
				return nil
			})
			assert.True(t, err == nil && strings.Join(got, " ") == test.want, "%+v: %v, %v, want %s", test.q, got, err,
				test.want)
		}
		for q, want := range map[URLQuery]uint64{
			{}: 1200, {Filter: "/A"}: 600, {Host: "h000.test"}: 2, {Host: "none.test"}: 0,
			{Host: "h000.test", Filter: "B", IgnoreCase: true}: 1,
		} {
			assert.Returns(r.CountURLs(t.Context(), q))(t, want, q)
		}
		for u, want := range map[string]URLStatus{
			"http://h000.test/b": {Due: due, Metadata: storage.Metadata{"k": {"v"}}},
			"http://h001.test/A": {Completed: true},
		} {
			got, err := r.URLStatus(t.Context(), parse(t, u))
			assert.True(t, err == nil && !got.Created.IsZero() && got.Completed == want.Completed &&
				got.Due.Equal(want.Due) && len(got.Metadata) == len(want.Metadata), "%s: %+v, %v, want %+v", u, got,
				err, want)
		}
		got, err := r.URLStatus(t.Context(), parse(t, "http://h002.test/b"))
		assert.True(t, err == nil && !got.Completed && got.Due.Equal(got.Created), "a discovery: %+v, %v", got, err)
		assert.Fails(r.URLStatus(t.Context(), parse(t, "http://h000.test/c")))(t, inspect.ErrUnknown, "an unknown URL")
	})
}

// TestQueueStats: the numbers of a host and of all follow puts, leases, deletions and restarts.
func TestQueueStats(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		check := func(host string, want QueueStats) {
			t.Helper()
			assert.Returns(r.QueueStats(t.Context(), host))(t, want, host)
		}
		check("", QueueStats{})
		r.discover("http://a.test/1", "http://a.test/2", "http://b.test/1")
		r.expect(remote.Request{Host: "a.test", PerHost: 1, Visibility: 2 * time.Second}, "http://a.test/1")
		r.known("http://b.test/1", time.Time{})
		for range 2 {
			check("", QueueStats{Queued: 2, InProcess: 1, Completed: 1, Queues: 2, ActiveQueues: 1})
			check("a.test", QueueStats{Queued: 2, InProcess: 1, Queues: 1, ActiveQueues: 1})
			check("b.test", QueueStats{Completed: 1, Queues: 1})
			check("c.test", QueueStats{})
			r.restart()
		}
		time.Sleep(2 * time.Second)
		check("a.test", QueueStats{Queued: 2, Queues: 1, ActiveQueues: 1})
		assert.Returns(r.Delete(t.Context(), Deletion{Host: "a.test"}))(t, 2, "URLs deleted")
		check("", QueueStats{Completed: 1, Queues: 1})
	})
}

// TestQueueKeys: a key that is no host stands for the hosts that URLs were put with it, over restarts and kills too.
// A host is in the queue of its last key, takes over what is set for it, and leaves it when its URLs are deleted.
func TestQueueKeys(t *testing.T) {
	t.Parallel()
	withClient(t, func(t *testing.T, r *clientRun) {
		long := strings.Repeat("ä/, ", 60)
		put := func(u, key string) { r.put(Put{URL: parse(t, u), Key: key}) }
		check := func(when string, want map[string][]string, queues ...string) {
			t.Helper()
			for key, hosts := range want {
				if got, err := r.HostsOfQueue(key, "", 10); err != nil || !slices.Equal(got, hosts) {
					t.Errorf("%s: %q has the hosts %q, %v, want %q", when, key, got, err, hosts)
				}
			}
			for _, n := range []int{1, 10} {
				var got []string
				for more := true; more; {
					page, err := r.ListQueues(t.Context(), QueueQuery{Start: len(got), Size: n, IncludeInactive: true})
					got = append(got, page...)
					must.True(t, err == nil, "%v", err)
					more = len(page) > 0
				}
				assert.Slice(t, got, queues, when, "the queues")
			}
		}
		put("http://a.test/1", "")
		put("http://www.one.test/", "one.test")
		put("http://one.test/", "one.test")
		put("http://x.test/", long)
		check("at first", map[string][]string{"one.test": {"www.one.test"}, long: {"x.test"}, "": nil, "one": nil},
			long, "one.test", "a.test")
		r.set("www.one.test", func(q *QueueSettings) { q.Delay, q.Limit = duration(time.Hour), 7 })
		put("http://blog.one.test/", "one.test")
		if q, err := r.Queue("blog.one.test"); err != nil || q.Delay == nil || *q.Delay != time.Hour || q.Limit != 7 {
			t.Errorf("a host that joins a queue has %+v, %v", q, err)
		}
		keys := make(map[string]string)
		for len(keys) < 5 {
			leases := r.lease(remote.Request{
				Fetcher: "client", N: 10, PerHost: 10, Visibility: time.Hour, Wait: time.Minute,
			})
			for _, l := range leases {
				keys[l.Host] = l.Key
			}
			if len(leases) == 0 {
				break
			}
		}
		want := map[string]string{"a.test": "a.test", "www.one.test": "one.test", "one.test": "one.test",
			"x.test": long, "blog.one.test": "one.test"}
		assert.True(t, maps.Equal(keys, want), "leased with the keys %q, want %q", keys, want)
		r.kill()
		put("http://x.test/", "192.0.2.1") // it is known, and its host moves
		put("http://www.one.test/2", "")
		put("http://one.test/2", "one.test")
		all := map[string][]string{"192.0.2.1": {"x.test"}, long: nil, "one.test": {"blog.one.test", "www.one.test"}}
		check("after a kill", all, "192.0.2.1", "one.test", "a.test")
		r.restart()
		check("after a restart", all, "192.0.2.1", "one.test", "a.test")
		s, err := r.URLStatus(t.Context(), parse(t, "http://x.test/"))
		assert.True(t, err == nil && s.Key == "192.0.2.1", "%+v, %v", s, err)
		put("http://x.test/", "x.test")
		must.Get(r.Delete(t.Context(), Deletion{Host: "www.one.test"}))(t)
		check("at last", map[string][]string{"192.0.2.1": nil, "one.test": {"blog.one.test"}},
			"one.test", "a.test", "x.test")
	})
}

// TestLastQueueKey: of several keys that one batch has for a host the last one counts, also if it is the host.
func TestLastQueueKey(t *testing.T) {
	t.Parallel()
	withClientOptions(t, func(*Options) {}, func(t *testing.T, r *clientRun) {
		u := parse(t, "http://a.test/1")
		r.put(Put{URL: u, Key: "a queue"}, Put{URL: u, Key: "a.test"})
		assert.Equal(t, r.lease(remote.Request{Fetcher: "client", N: 1})[0].Key, "a.test", "it is in the queue")
	})
}
