package crawl

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
)

var errNoPermit = errors.New("there is no permit")

// testPermits are permits that a test gives and takes away. Those that are out end with that.
type testPermits struct {
	mu      sync.Mutex
	given   context.Context // nil: none may begin
	take    context.CancelFunc
	refused int // calls of Begin without a permit
	out     int
}

func (p *testPermits) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given, p.take = context.WithCancel(context.Background())
}

func (p *testPermits) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take()
	p.given = nil
}

func (p *testPermits) Check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given == nil {
		return errNoPermit
	}
	return nil
}

func (p *testPermits) Begin(ctx context.Context, _ *frontier.GateRequest) (Permit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given == nil {
		p.refused++
		return nil, errNoPermit
	}
	p.out++
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(p.given, cancel)
	return &testPermit{p, p.given, ctx, cancel}, nil
}

func (p *testPermits) counts() (refused, out int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused, p.out
}

type testPermit struct {
	of     *testPermits
	given  context.Context
	ctx    context.Context
	cancel context.CancelFunc
}

func (p *testPermit) Context() context.Context { return p.ctx }

func (p *testPermit) Check() error { return p.given.Err() }

func (p *testPermit) End() {
	p.cancel()
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.out--
}

// TestPermits: without a permit nothing is requested, whoever the request is for. When permits end, what is
// in flight is broken off, and requested again when there are permits again.
func TestPermits(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		slow := testweb.Slow(time.Hour, testweb.Page("slow"))
		web := serve(site("a.test", "", paths("/p/", 30), testweb.Routes{"/p/ac": slow}))
		permits := new(testPermits)
		o := testOptions(t, web)
		o.Permits, o.Fetch.Timeout = permits, 2*time.Hour
		e, stop := daemon(t, o, web.URL("a.test", "/"))
		time.Sleep(time.Hour)
		if refused, _ := permits.counts(); web.Served() != 0 || refused != 0 {
			t.Fatalf("%d requests without a permit, and %d were tried", web.Served(), refused)
		}
		permits.give()
		testkit.Until(t, "the slow page is requested", func() bool { return len(web.Requests().Path("/p/ac")) == 1 })
		permits.end()
		served := web.Served()
		time.Sleep(time.Second)
		_, out := permits.counts()
		assert.True(t, out == 0, "%d requests are in flight a second after their permit ended", out)
		time.Sleep(time.Hour)
		if refused, out := permits.counts(); web.Served() != served || out != 0 || refused > o.Workers {
			t.Errorf("%d requests without a permit, %d are out, and %d were tried", web.Served()-served, out, refused)
		}
		web.SetHandler("a.test", site("a.test", "", paths("/p/", 30), nil).Handler)
		permits.give()
		testkit.Until(t, "all is fetched", func() bool { return e.Status().URLs["fetched"] == 31 })
		stop()
		checkOutput(t, o)
		log := web.Requests()
		checkPolite(t, log, o.Frontier.Politeness.Delay)
		assert.Equal(t, len(log.Path("/p/ac")), 2, "the page whose request was broken off was requested times")
		if _, out := permits.counts(); out != 0 {
			t.Errorf("%d permits are out", out)
		}
	})
}

// latePermits are permits that end while a request waits for its own.
type latePermits struct {
	*testPermits
	begun, answer chan struct{}
}

func (p latePermits) Begin(ctx context.Context, r *frontier.GateRequest) (Permit, error) {
	p.begun <- struct{}{}
	<-p.answer
	return p.testPermits.Begin(ctx, r)
}

// TestPermitTooLate: a request that did not begin, since its permit had ended by then, is not left
// behind by an orderly end as one that may have been lost.
func TestPermitTooLate(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/p/", 30), nil))
		permits := latePermits{new(testPermits), make(chan struct{}), make(chan struct{})}
		o := testOptions(t, web)
		o.Permits = permits
		permits.give()
		_, stop := daemon(t, o, web.URL("a.test", "/"))
		<-permits.begun
		permits.end()
		permits.answer <- struct{}{}
		synctest.Wait()
		stop()
		if refused, _ := permits.counts(); refused != 1 || web.Served() != 0 {
			t.Errorf("%d requests were tried and %d made, want 1 and 0", refused, web.Served())
		}
		assert.Returns(HasUncommitted(o.DataDir))(t, false, "the crawl has uncommitted requests")
	})
}

// TestTaken: whoever takes a crawl over that others may have gone on with lets each host have its delay
// first. A new crawl has nothing to wait for.
func TestTaken(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/p/", 30), nil))
		o := testOptions(t, web)
		o.Frontier.Politeness.Delay, o.GiveUpAfter, o.Taken = time.Minute, time.Hour, true
		started := time.Now()
		must.Get(crawlFor(t, o, 5*time.Minute, web.URL("a.test", "/")))(t)
		log := web.Requests()
		must.True(t, len(log) >= 3 && log[0].Start.Sub(started) <= 10*time.Second,
			"%d requests, the first %v after the start", len(log), log[0].Start.Sub(started))
		time.Sleep(time.Hour)
		taken := time.Now()
		crawl(t, o)
		assert.AtLeast(t, web.Requests()[len(log)].Start.Sub(taken), time.Minute,
			"the first request comes after the host was taken")
	})
}

// TestForeignHosts: an engine of a shard makes no request to a host of another, neither for a seed nor for
// the robots.txt that one of its own hosts redirects to; and it sends nobody a seed.
func TestForeignHosts(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		web := serve(site("a.test", "", paths("/p/", 3), nil), site("b.test", "", paths("/p/", 3), nil),
			site("c.test", "", paths("/p/", 3),
				testweb.Routes{"/robots.txt": testweb.Redirect(302, "//b.test/robots.txt")}))
		o := testOptions(t, web)
		j := &memoryJournal{taken: -1, foreign: func(host string) bool { return host == "b.test" }}
		o.Journal = j
		crawl(t, o, web.URL("b.test", "/"), web.URL("a.test", "/"), web.URL("c.test", "/"), web.URL("b.test", "/p/aa"))
		assert.Equal(t, len(pagesOf(web, "a.test")), 4, "pages of the own host were requested")
		assert.Equal(t, len(pagesOf(web, "c.test")), 0, "pages of a host without a robots.txt were requested")
		if log := web.Requests().Host("b.test"); len(log) > 0 || len(j.sent) > 0 {
			t.Errorf("the other shard has received %d requests, and %d URLs", len(log), len(j.sent))
		}
	})
}
