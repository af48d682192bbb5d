package requestlog

import (
	"net/netip"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

var began = time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.UTC)

func testProcess() Process {
	return Process{Began: began, Uptime: 5 * time.Hour, Boot: "boot-a", Agent: "amble/1 (+bot@one.example)",
		Tokens: []string{"amble"}, Obey: true, LedgerBase: 1000}
}

func mustURL(t testing.TB, text string) weburl.URL {
	t.Helper()
	return must.Get(weburl.Parse(text))(t)
}

func policyOf(body string) *Policy {
	r := robots.Record{Class: robots.ClassFound, Copy: robots.ClassFound, Status: 200, Body: []byte(body),
		FinalURL: "http://a.test/robots.txt",
		Fetched:  began.Truncate(time.Millisecond), Expires: began.Truncate(time.Millisecond).Add(24 * time.Hour)}
	return &Policy{Record: r, Version: robots.VersionOf(r.Body)}
}

// request returns a page request with an end relative to the start of the process.
func request(t testing.TB, n int, url string, end time.Duration, p *Policy) *Request {
	e := began.Add(end)
	return &Request{
		URL: mustURL(t, url), Address: netip.MustParseAddr("192.0.2.7"), LedgerOffset: uint64(1000 + 50*n), Sent: true,
		Start:   e.Add(-120*time.Millisecond - 7),
		Decided: e.Add(-121 * time.Millisecond), End: e, Status: 200, Bytes: 14_211, Delay: time.Second,
		DelayReason: politeness.ReasonCrawlDelay,
		Reason:      politeness.ReasonRetryAfter, Allowed: true, Line: 3, Policy: p,
	}
}

func mustOpen(t testing.TB, dir string, o Options, p Process) *Log {
	t.Helper()
	l := must.Get(Open(dir, o, p))(t)
	t.Cleanup(func() {
		assert.NoError(t, l.Close())
	})
	return l
}

func mustAppend(t testing.TB, l *Log, all ...*Request) {
	t.Helper()
	for _, r := range all {
		must.Do(t, l.Append(r))
	}
}

// readAll reads a log. It restores the bodies, so that requests can be compared with those that
// were written.
func readAll(t testing.TB, dir string, q Query) ([]*Request, Summary) {
	t.Helper()
	var all []*Request
	s := must.Get(Read(dir, q, func(r *Request) error {
		c := *r
		if r.Policy != nil {
			p := &Policy{Record: r.Policy.Record, Version: r.Policy.Version}
			if body, kept := r.Policy.Body(); kept {
				p.Record.Body = body
			}
			c.Policy = p
		}
		all = append(all, &c)
		return nil
	}))(t)
	return all, s
}

// same compares a request that was read with the one that was written. Instants keep nanoseconds on
// the monotonic clock, microseconds on the other.
func same(t testing.TB, got, want *Request) {
	t.Helper()
	w := *want
	for _, pair := range [][2]time.Time{{got.Start, w.Start}, {got.End, w.End}, {got.Decided, w.Decided}} {
		if d := pair[0].Sub(pair[1]).Abs(); d > time.Microsecond {
			t.Errorf("%s: time %v, want %v", got.URL, pair[0], pair[1])
		}
	}
	g := *got
	g.Start, g.End, g.Decided, g.Process, g.starts, g.ends = w.Start, w.End, w.Decided, nil, Instant{}, Instant{}
	assert.Deep(t, &g, &w, "read", g, w)
}
