package audit

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

var began = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const rules = "User-agent: *\nDisallow: /no\nAllow: /no/but\nCrawl-delay: 1\n"

// world writes a request log.
type world struct {
	t       testing.TB
	dir     string
	log     *requestlog.Log
	process requestlog.Process
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, dir: t.TempDir()}
	w.begin(began, 1)
	return w
}

// begin begins a process, at a time since the start of the machine.
func (w *world) begin(at time.Time, uptime time.Duration) {
	w.process = requestlog.Process{Began: at, Uptime: uptime, Boot: "boot", Agent: "amble/1", Tokens: []string{"amble"},
		Obey: true}
	w.open()
}

func (w *world) open() {
	w.t.Helper()
	if w.log != nil {
		w.close()
	}
	l := must.Get(requestlog.Open(w.dir, requestlog.DefaultOptions(), w.process))(w.t)
	w.log = l
}

func (w *world) close() {
	w.t.Helper()
	must.Do(w.t, w.log.Close())
}

// policy returns a robots.txt that was fetched at a time.
func policy(body string, fetched time.Time) *requestlog.Policy {
	r := robots.Record{Class: robots.ClassFound, Copy: robots.ClassFound, Status: 200, Body: []byte(body),
		Fetched: fetched,
		Expires: fetched.Add(24 * time.Hour), Refresh: fetched.Add(20 * time.Hour)}
	return &requestlog.Policy{Record: r, Version: robots.VersionOf(r.Body)}
}

// page writes a request of a polite crawler, 100 ms long and at a time since the start. change may
// spoil it.
func (w *world) page(url string, after time.Duration, change func(*requestlog.Request)) {
	w.t.Helper()
	u := must.Get(weburl.Parse(url))(w.t)
	start := w.process.Began.Add(after)
	q := &requestlog.Request{URL: u, Address: netip.MustParseAddr("192.0.2.1"), Sent: true, Status: 200, Start: start,
		Decided: start.Add(-time.Millisecond),
		End:     start.Add(100 * time.Millisecond), Delay: time.Second, DelayReason: politeness.ReasonCrawlDelay,
		Allowed: true, Policy: policy(rules, began)}
	if change != nil {
		change(q)
	}
	must.Do(w.t, w.log.Append(q))
}

// replaced writes requests for a robots.txt, of which the first brings a good file and the others with a
// status none, and then a request for a page that these allow.
func (w *world) replaced(url string, status, times int) {
	none := &requestlog.Policy{Record: robots.Record{Class: robots.ClassNotRobots, Copy: robots.ClassNotRobots,
		Status: status, Fetched: began, Expires: began.Add(time.Hour), Refresh: began.Add(time.Hour)}}
	if status != 200 {
		none.Record.Class, none.Record.Copy = robots.ClassUnavailable, robots.ClassUnavailable
	}
	ask := func(at int, p *requestlog.Policy) {
		w.page(url+"robots.txt", time.Duration(at)*2*time.Second, func(q *requestlog.Request) {
			q.Kind, q.Policy = requestlog.Robots, p
		})
	}
	ask(0, policy(rules, began))
	for i := range times {
		ask(1+i, none)
	}
	w.page(url+"no", time.Duration(1+times)*2*time.Second, func(q *requestlog.Request) { q.Policy = none })
}

func (w *world) audit(o Options) *Report {
	w.t.Helper()
	w.close()
	o.Robots = robots.DefaultOptions()
	return must.Get(Run(context.Background(), [][]string{{w.dir}}, o))(w.t)
}

// TestNodes: the requests of two machines to a host are judged together, by their wall clocks where they follow one
// another, and those of one machine by its own clock.
func TestNodes(t *testing.T) {
	const a = "http://a.test/"
	audit := func(second time.Duration) *Report {
		one, other := newWorld(t), newWorld(t)
		other.process.Boot = "other"
		other.open()
		one.page(a, 0, nil)
		other.page(a+"2", second, nil)
		one.page(a+"3", 4*time.Second, nil)
		other.page(a+"4", 6*time.Second, nil)
		one.close()
		other.close()
		r := must.Get(Run(t.Context(), [][]string{{other.dir, one.dir, t.TempDir()}},
			Options{Robots: robots.DefaultOptions()}))(t)
		assert.True(t, r.Requests == 4 && len(r.Hosts()) == 1, "%d requests of %d hosts, want 4 of 1", r.Requests,
			len(r.Hosts()))
		return r
	}
	if r := audit(2 * time.Second); len(r.Violations) > 0 || r.WallClock != 3 ||
		r.Hosts()[0].Smallest.Seconds != 1.9 {
		t.Errorf("polite nodes: %v, %d gaps by the wall clock, smallest %+v", r.Violations, r.WallClock,
			r.Hosts()[0].Smallest)
	}
	r := audit(500 * time.Millisecond)
	assert.True(t, slices.Equal(kindsOf(r), []Kind{ShortGap}) && r.Violations[0].URL == a+"2",
		"a node that requests too soon after another: %v", r.Violations)
}

func kindsOf(r *Report) (kinds []Kind) {
	for _, v := range r.Violations {
		kinds = append(kinds, v.Kind)
	}
	return kinds
}

// violationTest is a log and the violations in it.
type violationTest struct {
	name string
	do   func(*world)
	want []Kind
}

// wallTests are those of requests to a host behind a wall.
func wallTests() []violationTest {
	const a = "http://a.test/"
	answered := func(status int) func(*requestlog.Request) {
		return func(q *requestlog.Request) { q.Status, q.Reason = status, politeness.ReasonWall }
	}
	plain := func(status int) func(*requestlog.Request) {
		return func(q *requestlog.Request) { q.Status = status }
	}
	return []violationTest{
		{"refusals before there is a wall", func(w *world) {
			for i := range 8 {
				w.page(a, time.Duration(i)*2*time.Second, plain(403))
			}
		}, nil},
		{"probes of a wall", func(w *world) {
			w.page(a, 0, plain(403))
			w.page(a+"b", time.Minute, answered(403))
			w.page(a+"c", 4*time.Minute, answered(403))
			w.page(a+"d", 9*time.Minute, answered(403))
			w.page(a+"e", 20*time.Minute, answered(200))
			w.page(a+"f", 20*time.Minute+2*time.Second, plain(403))
			w.page(a+"g", 20*time.Minute+4*time.Second, plain(200))
		}, nil},
		{"a request after a failed probe", func(w *world) {
			w.page(a, 0, answered(403))
			w.page(a+"b", time.Minute, plain(200))
		}, []Kind{BehindWall}},
		{"its robots.txt after a failed probe", func(w *world) {
			w.page(a, 0, answered(451))
			w.page(a+"robots.txt", time.Minute, func(q *requestlog.Request) { q.Kind = requestlog.Robots })
		}, []Kind{BehindWall}},
		{"a backoff that is not doubled", func(w *world) {
			w.page(a, 0, answered(403))
			w.page(a+"b", 3*time.Minute, answered(403))
			w.page(a+"c", 6*time.Minute, answered(403))
			w.page(a+"d", 20*time.Minute, answered(403))
		}, []Kind{BehindWall}},
		{"a probe that was not committed", func(w *world) {
			w.page(a, 0, answered(403))
			w.begin(began.Add(time.Minute), 2*time.Minute)
			w.page(a+"b", 0, answered(403))
		}, nil},
	}
}

// TestOptedOut: a forged log has requests that opt-outs cover. Those from a second after the
// opt-out was recorded are violations, and no others.
func TestOptedOut(t *testing.T) {
	list := optout.NewList(
		optout.Entry{Scope: optout.ScopeDomain, Value: "out.test", At: began.Add(time.Minute), Reason: "mail"},
		optout.Entry{Scope: optout.ScopePrefix, Value: "http://a.test/diary/", At: began.Add(time.Minute)},
		optout.Entry{Scope: optout.ScopeRange, Value: "198.51.100.0/24", At: began.Add(time.Minute)},
		optout.Entry{Scope: optout.ScopeHost, Value: "back.test", At: began, Until: began.Add(time.Minute)},
	)
	at := func(address string) func(*requestlog.Request) {
		return func(q *requestlog.Request) { q.Address = netip.MustParseAddr(address) }
	}
	w := newWorld(t)
	w.page("http://www.out.test/", time.Minute, nil) // in flight
	w.page("http://www.out.test/late", 2*time.Minute, nil)
	w.page("http://a.test/", 2*time.Minute, nil)
	w.page("http://a.test/diary/late", 3*time.Minute, nil)
	w.page("http://b.test/", 30*time.Second, at("198.51.100.7"))
	w.page("http://b.test/late", 2*time.Minute, at("198.51.100.7"))
	w.page("http://back.test/", 2*time.Minute, nil)
	w.page("http://out.test/robots.txt", 4*time.Minute, func(q *requestlog.Request) { q.Kind = requestlog.Robots })
	r := w.audit(Options{OptOuts: list})
	var got []string
	for _, v := range r.Violations {
		got = append(got, v.URL)
		assert.Equal(t, v.Kind, OptedOut, v)
	}
	want := []string{"http://www.out.test/late", "http://a.test/diary/late", "http://b.test/late",
		"http://out.test/robots.txt"}
	assert.True(t, slices.Equal(got, want) && r.Counts.Violations == uint64(len(want)), "%q, want %q", got, want)
	if len(r.Violations) > 0 && !strings.Contains(r.Violations[0].Text, "domain out.test") {
		t.Errorf("the text is %q", r.Violations[0].Text)
	}
}

// TestViolations: the audit finds each violation, and nothing in requests that only look like one.
func TestViolations(t *testing.T) {
	const a = "http://a.test/"
	type change = func(*requestlog.Request)
	delayed := func(d time.Duration) change {
		return func(q *requestlog.Request) { q.Delay, q.Policy = d, policy("", began) }
	}
	tests := []violationTest{
		{"polite", func(w *world) { w.page(a, 0, nil); w.page(a+"b", 1100*time.Millisecond, nil) }, nil},
		{"a nanosecond early", func(w *world) { w.page(a, 0, nil); w.page(a+"b", 1100*time.Millisecond-1, nil) },
			[]Kind{ShortGap}},
		{"after a long response", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) { q.End = q.Start.Add(5 * time.Second) })
			w.page(a+"b", 5500*time.Millisecond, nil)
		}, []Kind{ShortGap}},
		{"another host", func(w *world) { w.page(a, 0, nil); w.page("http://b.test/", 0, nil) }, nil},
		{"another port of the host",
			func(w *world) { w.page(a, 0, nil); w.page("http://a.test:81/", 500*time.Millisecond, nil) },
			[]Kind{ShortGap}},
		{"a robots.txt counts", func(w *world) {
			w.page(a+"robots.txt", 0, func(q *requestlog.Request) { q.Kind = requestlog.Robots })
			w.page(a, 500*time.Millisecond, nil)
		}, []Kind{ShortGap}},
		{"failures count", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) { q.Status, q.Failure, q.Sent = 0, fetch.KindRefused, false })
			w.page(a, 500*time.Millisecond, nil)
		}, []Kind{ShortGap}},
		{"side by side without a delay",
			func(w *world) { w.page(a, 0, delayed(0)); w.page(a+"b", 50*time.Millisecond, delayed(0)) }, nil},
		{"side by side with a delay", func(w *world) { w.page(a, 0, nil); w.page(a+"b", 50*time.Millisecond, nil) },
			[]Kind{ShortGap}},
		{"within a longer one", func(w *world) {
			w.page(a+"in", 2*time.Second, nil)
			w.page(a+"out", 0, func(q *requestlog.Request) { q.End = q.Start.Add(10 * time.Second) })
		}, []Kind{ShortGap}},
		{"over a restart", func(w *world) {
			w.page(a, 0, nil)
			w.begin(began.Add(time.Second), 1+time.Second)
			w.page(a, 50*time.Millisecond, nil)
		}, []Kind{ShortGap}},
		{"over a restart, in time though the clock was set back", func(w *world) {
			w.page(a, 0, nil)
			w.begin(began.Add(-time.Hour), 1+time.Second)
			w.page(a, 100*time.Millisecond,
				func(q *requestlog.Request) { q.Policy = policy(rules, began.Add(-time.Hour)) })
		}, nil},
		{"over a restart, too early though the clock was set forward", func(w *world) {
			w.page(a, 0, nil)
			w.begin(began.Add(time.Hour), 1+time.Second)
			w.page(a, 50*time.Millisecond, nil)
		}, []Kind{ShortGap}},
		{"after one without a known end", func(w *world) {
			w.page(a, 0, nil)
			w.begin(began.Add(5*time.Second), 1+5*time.Second)
			w.page(a+"open", -2*time.Second, func(q *requestlog.Request) { q.End = time.Time{} })
			w.page(a, 500*time.Millisecond, nil)
		}, []Kind{ShortGap}},
		{"one without an end, in time by what the start ledger rounds", func(w *world) {
			w.page(a, 0, nil)
			w.begin(began.Add(5*time.Second), 1+5*time.Second)
			w.page(a+"open", -3902*time.Millisecond+1, func(q *requestlog.Request) { q.End = time.Time{} })
			w.page(a, 2*time.Second, nil)
		}, nil},
		{"one without an end, too early by more than the start ledger rounds", func(w *world) {
			w.page(a, 0, nil)
			w.begin(began.Add(5*time.Second), 1+5*time.Second)
			w.page(a+"open", -3902*time.Millisecond, func(q *requestlog.Request) { q.End = time.Time{} })
			w.page(a, 2*time.Second, nil)
		}, []Kind{ShortGap}},
		{"one without an end, too early", func(w *world) {
			w.page(a, 0, nil)
			w.begin(began.Add(5*time.Second), 1+5*time.Second)
			w.page(a+"open", -4500*time.Millisecond, func(q *requestlog.Request) { q.End = time.Time{} })
		}, []Kind{ShortGap}},
		{"one without an end, disallowed", func(w *world) {
			w.page(a, 0, nil)
			w.begin(began.Add(5*time.Second), 1+5*time.Second)
			w.page(a+"no", -2*time.Second, func(q *requestlog.Request) { q.End = time.Time{} })
		}, []Kind{Disallowed}},
		{"before Retry-After", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) { q.Status, q.RetryAfter = 503, time.Minute })
			w.page(a, 60*time.Second, nil)
		}, []Kind{EarlyReturn}},
		{"after Retry-After", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) { q.Status, q.RetryAfter = 503, time.Minute })
			w.page(a, 60*time.Second+100*time.Millisecond, nil)
		}, nil},
		{"in flight when Retry-After arrived", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) { delayed(0)(q); q.Status, q.RetryAfter = 503, time.Minute })
			w.page(a+"b", 50*time.Millisecond, delayed(0))
		}, nil},
		{"disallowed, whatever the log says",
			func(w *world) { w.page(a+"no/page", 0, func(q *requestlog.Request) { q.Line = 3 }) }, []Kind{Disallowed}},
		{"the longer rule allows", func(w *world) { w.page(a+"no/but", 0, nil) }, nil},
		{"a robots.txt is always allowed", func(w *world) {
			w.page(a+"no/robots.txt", 0, func(q *requestlog.Request) { q.Kind = requestlog.Robots })
		}, nil},
		{"without a robots.txt", func(w *world) { w.page(a, 0, func(q *requestlog.Request) { q.Policy = nil }) },
			[]Kind{NoVerdict}},
		{"by a robots.txt that lapsed", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) { q.Policy = policy(rules, began.Add(-25*time.Hour)) })
		}, []Kind{NotInForce}},
		{"by one that is older, where the delay is long", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) {
				q.Delay, q.Policy = 2*time.Hour, policy(rules, began.Add(-25*time.Hour))
			})
		}, nil},
		{"by one that was not found", func(w *world) {
			w.page(a+"no", 0, func(q *requestlog.Request) {
				q.Policy = policy("", began)
				record := &q.Policy.Record
				record.Class, record.Copy, record.Body = robots.ClassUnavailable, robots.ClassUnavailable, nil
				q.Policy.Version = robots.Version{}
			})
		}, nil},
		{"by one that could not be read", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) {
				q.Policy = &requestlog.Policy{Record: robots.Record{Class: robots.ClassUnreachable,
					FirstUnreachable: began, Refresh: began.Add(time.Hour), Failures: 1}}
			})
		}, []Kind{Disallowed, NotInForce}},
		{"by one page in place of a good file", func(w *world) { w.replaced(a, 200, 1) }, []Kind{NotInForce}},
		{"by one refusal in place of a good file", func(w *world) { w.replaced(a, 403, 1) }, []Kind{NotInForce}},
		{"by two pages in place of a good file", func(w *world) { w.replaced(a, 200, 2) }, nil},
		{"by the end of a good file", func(w *world) { w.replaced(a, 404, 1) }, nil},
		{"faster than its Crawl-delay",
			func(w *world) { w.page(a, 0, func(q *requestlog.Request) { q.Delay = 999 * time.Millisecond }) },
			[]Kind{SlowDelay}},
		{"outside of Visit-time", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) {
				q.Policy = policy("User-agent: *\nVisit-time: 0200-0600\n", began)
			})
		}, []Kind{WrongHour}},
		{"within Visit-time", func(w *world) {
			w.page(a, 0, func(q *requestlog.Request) {
				q.Policy = policy("User-agent: *\nVisit-time: 0200-0600\nVisit-time: 2300-1201\n", began)
			})
		}, nil},
	}
	tests = append(tests, wallTests()...)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.do(w)
			r := w.audit(Options{})
			if got := kindsOf(r); !slices.Equal(got, test.want) || r.Counts.Violations != uint64(len(test.want)) {
				t.Errorf("%v, want %v: %+v", got, test.want, r.Violations)
			}
		})
	}
}

// TestReport: the counts, and the hosts that they belong to.
func TestReport(t *testing.T) {
	w := newWorld(t)
	w.page("http://a.test/robots.txt", 0, func(q *requestlog.Request) { q.Kind = requestlog.Robots })
	w.page("http://a.test/1", 1200*time.Millisecond, nil)
	w.page("http://a.test/2", 2301*time.Millisecond, func(q *requestlog.Request) {
		q.Status, q.Failure = 0, fetch.KindReset
	})
	w.page("http://b.test/no", 3*time.Second, nil)
	newer := policy(rules+"# newer\n", began)
	w.begin(began.Add(10*time.Second), 1+10*time.Second)
	w.page("http://a.test/3", -5*time.Second, func(q *requestlog.Request) { q.End = time.Time{} })
	w.page("http://a.test/3", time.Second, func(q *requestlog.Request) { q.Again, q.Policy = true, newer })
	w.page("http://a.test/4", 3*time.Second, func(q *requestlog.Request) { q.Policy = newer })
	r := w.audit(Options{})
	want := Counts{Requests: 7, Pages: 6, Robots: 1, Failed: 1, NoEnd: 1, Again: 1, Violations: 1, WallClock: 1}
	assert.Equal(t, r.Counts, want, "counts")
	hosts := r.Hosts()
	must.True(t, len(hosts) == 2 && hosts[0].Host == "b.test" && hosts[0].Counts.Violations == 1 &&
		hosts[1].Host == "a.test", "hosts: %+v", hosts)
	a := hosts[1]
	g := a.Smallest
	assert.True(t, g != nil && g.Seconds == 1 && g.Delay == 1 && g.Reason == "crawl-delay" && g.Exact &&
		g.At.Equal(began.Add(11*time.Second)), "smallest gap %+v", a.Smallest)
	assert.True(t, len(a.Versions) == 2 && a.Versions[0].Pages == 3 && a.Versions[1].Pages == 2 &&
		a.Versions[1].Version == newer.Version.String() && a.Versions[0].Class == "found" &&
		a.Versions[1].Origin == "http://a.test", "versions %+v", a.Versions)
	assert.True(t, r.From.Equal(began) && r.To.Equal(began.Add(13*time.Second)), "from %v to %v", r.From, r.To)
	only, err := Run(context.Background(), [][]string{{w.dir}},
		Options{Host: "b.test", Robots: robots.DefaultOptions()})
	assert.True(t, err == nil && only.Requests == 1 && len(only.Hosts()) == 1, "of one host: %+v, %v", only, err)
	since, err := Run(context.Background(), [][]string{{w.dir}},
		Options{Since: began.Add(11 * time.Second), Robots: robots.DefaultOptions()})
	assert.True(t, err == nil && since.Requests == 2 && since.Counts.Violations == 0 &&
		since.Hosts()[0].Smallest != nil, "since then: %+v, %v", since, err)
}

// TestEach: the findings of single requests. An error of Each ends the audit.
func TestEach(t *testing.T) {
	w := newWorld(t)
	w.page("http://a.test/no/but", 0, func(q *requestlog.Request) { q.RetryAfter = time.Second })
	w.page("http://a.test/", 2*time.Second, nil)
	var lines []Line
	w.audit(Options{Each: func(q *requestlog.Request, f *Finding) error {
		lines = append(lines, NewLine(q, f))
		return nil
	}})
	l := lines[0]
	assert.True(t, l.Rule == "Allow: /no/but" && l.RuleLine == 3 && *l.Allowed && l.Verdict == "rule" && l.Gap == nil &&
		l.DelayLine == 4 && l.DelayText == "Crawl-delay: 1" && l.RetryAfter == 1 && l.Method == "GET" &&
		l.Agent == "amble/1" && l.Seconds == 0.1, "%+v", l)
	l = lines[1]
	assert.True(t, l.Gap != nil && *l.Gap == 1.9 && l.Exact && l.Verdict == "no rule" && l.Rule == "", "%+v", l)
	enough := errors.New("enough")
	if _, err := Run(context.Background(), [][]string{{w.dir}},
		Options{Each: func(*requestlog.Request, *Finding) error { return enough }}); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.open()
	for i := range 5000 {
		w.page("http://a.test/", time.Duration(i)*2*time.Second, nil)
	}
	assert.Fails(Run(ctx, [][]string{{w.dir}}, Options{}))(t, context.Canceled, "after the end of the context")
}

// TestUnproven: if the log had no room for a robots.txt, its pages are neither proven nor a
// violation.
func TestUnproven(t *testing.T) {
	w := newWorld(t)
	o := requestlog.Options{MaxSize: requestlog.MinSize}
	w.close()
	var err error
	w.log, err = requestlog.Open(w.dir, o, w.process)
	must.True(t, err == nil, "%v", err)
	noise := []byte("User-agent: *\nDisallow: /no\n# ")
	for seed := uint64(1); len(noise) < 40_000; seed = seed*6364136223846793005 + 1442695040888963407 {
		noise = append(noise, byte(seed>>56)|1)
	}
	w.page("http://a.test/no", 0, func(q *requestlog.Request) { q.Policy = policy(string(noise), began) })
	r := w.audit(Options{})
	assert.True(t, r.Unproven == 1 && r.Counts.Violations == 0, "%+v", r.Counts)
}

// TestNoFileAtKill: a page in flight at a kill names no robots.txt if there was none. The last
// known state of the origin then judges it.
func TestNoFileAtKill(t *testing.T) {
	gone := policy("", began)
	gone.Record.Class, gone.Record.Copy = robots.ClassUnavailable, robots.ClassUnavailable
	gone.Record.Body, gone.Version = nil, robots.Version{}
	open := func(q *requestlog.Request) { q.End, q.Policy = time.Time{}, nil }
	w := newWorld(t)
	w.page("http://a.test/robots.txt", 0,
		func(q *requestlog.Request) { q.Kind, q.Status, q.Policy = requestlog.Robots, 404, gone })
	w.page("http://b.test/", 0, nil)
	w.begin(began.Add(10*time.Second), 1+10*time.Second)
	w.page("http://a.test/open", -5*time.Second, open)
	w.page("http://b.test/open", -5*time.Second, open)
	r := w.audit(Options{})
	want := Counts{Requests: 4, Pages: 3, Robots: 1, NoEnd: 2, Unproven: 1, UnprovenNoEnd: 1, WallClock: 2}
	assert.Equal(t, r.Counts, want, r.Violations)
}

// TestDamagedLog: an audit reports the parts of the log that it could not read, also in the newest
// file.
func TestDamagedLog(t *testing.T) {
	w := newWorld(t)
	for i := range 3000 {
		w.page("http://a.test/no/but", time.Duration(i)*2*time.Second, nil)
	}
	w.close()
	name := filepath.Join(w.dir, "requests-0000000001.log")
	text := must.Get(os.ReadFile(name))(t)
	text[len(text)/2] ^= 1
	must.Do(t, os.WriteFile(name, text, 0o600))
	r, err := Run(context.Background(), [][]string{{w.dir}}, Options{Robots: robots.DefaultOptions()})
	assert.True(t, err == nil && len(r.Damaged) == 1 && r.Damaged[0].Requests > 0 &&
		r.Requests+uint64(r.Damaged[0].Requests) == 3000, "%d requests, damaged %+v, %v", r.Requests, r.Damaged, err)
}

// TestManyViolations: the list of violations and the versions of a host are bounded; the count is
// not.
func TestManyViolations(t *testing.T) {
	w := newWorld(t)
	for i := range MaxViolations + 50 {
		p := policy(fmt.Sprintf("%s# %d\n", rules, i), began)
		w.page("http://a.test/no", time.Duration(i)*2*time.Second, func(q *requestlog.Request) { q.Policy = p })
	}
	r := w.audit(Options{})
	assert.True(t, len(r.Violations) == MaxViolations && r.Counts.Violations == MaxViolations+50,
		"%d listed, %d counted", len(r.Violations), r.Counts.Violations)
	if h := r.Hosts()[0]; len(h.Versions) != MaxVersions || h.Older != MaxViolations+50-MaxVersions {
		t.Errorf("%d versions listed, %d older ones", len(h.Versions), h.Older)
	}
}

// TestPolicyThatPanics: pages whose robots.txt makes amble panic are unproven, and the audit goes
// on.
func TestPolicyThatPanics(t *testing.T) {
	j := newJudge(robots.DefaultOptions())
	u := must.Get(weburl.Parse("http://a.test/"))(t)
	q := &requestlog.Request{URL: u, Kind: requestlog.Page, Policy: policy(rules, began),
		Process: &requestlog.Process{Tokens: []string{"amble"}}}
	j.enter(q)
	j.compiled[q.Policy] = &compiled{} // it has no rules at all
	var f Finding
	if j.rules(q, &f); !f.Unproven || len(f.Violations) > 0 {
		t.Errorf("%+v", f)
	}
}
