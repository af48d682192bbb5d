package crawl

import (
	"net/http"
	"testing"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/bodies"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/lists"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/load"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/quota"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/survey"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
	"github.com/amble-crawler/amble/internal/testing/testweb"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// testDispatcher returns a dispatcher with an empty frontier, an empty store and a ledger in memory. Nobody is at the
// other ends of its channels.
func testDispatcher(t testing.TB) *dispatcher {
	t.Helper()
	o := DefaultOptions()
	o.fill()
	e := &Engine{ledger: &memoryLedger{}, bodies: bodies.New(true)}
	e.o, e.log, e.table, e.shared = o, testLog(t), survey.NewTable(), testShared(&o)
	e.store = must.Get(storage.Open(t.TempDir(), storage.Options{}))(t)
	t.Cleanup(func() { must.Do(t, e.store.Close()) })
	e.joinProcess()
	e.live.Store(newInForce(&e.o, o.Live()))
	f := must.Get(frontier.New(o.Frontier, frontier.NewScope(frontier.ModeAny, nil, nil), time.Now()))(t)
	d, _ := e.newRoles(f, load.Forgiveness{})
	d.flights.working = t.Context()
	return d
}

// memoryLedger is a start ledger in memory. Each line has one byte.
type memoryLedger struct {
	lines   uint64
	trimmed uint64
}

func (l *memoryLedger) Append(starts.Start) (uint64, error) {
	l.lines++
	return l.lines - 1, nil
}

func (l *memoryLedger) Add(starts.Start) uint64 {
	l.lines++
	return l.lines - 1
}

func (l *memoryLedger) Flush() error { return nil }

func (l *memoryLedger) AppendWait(starts.Wait) error { return nil }

func (l *memoryLedger) AppendEnd(time.Time) error { return nil }

func (l *memoryLedger) Offset() uint64 { return l.lines }

func (l *memoryLedger) Trim(committed uint64) error {
	l.trimmed = committed
	return nil
}

func (l *memoryLedger) Close() error { return nil }

// TestLedgerMark: the mark that a commit sets points to the line of the first request in flight, and
// to the end of the start ledger when none is.
func TestLedgerMark(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, serve func(...testweb.Site) *testweb.Web) {
		release := make(chan struct{})
		held := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })
		web := serve(site("a.test", "", nil, testweb.Routes{"/": held}), site("b.test", "", paths("/", 20), nil))
		o := testOptions(t, web)
		o.Mode, o.Fetch.Timeout, o.Fetch.HeaderTimeout = frontier.ModeAny, time.Hour, time.Hour
		e, stop := daemon(t, o, web.URL("b.test", "/"))
		defer stop()
		fetched := func(n uint64) func() bool {
			return func() bool { return e.store.Counters().Of(storage.Fetched) == n }
		}
		// check holds the mark against the ledger: the hosts of the lines behind it, in their order.
		check := func(first string, lines int) {
			t.Helper()
			var hosts []string
			mark := committedOffset(t, e.store)
			u, err := starts.Read(o.DataDir, mark, boot.ID(), func(offset uint64, s starts.Start) {
				if hosts = append(hosts, s.Host); len(hosts) == 1 && offset != mark {
					t.Errorf("the mark is %d, and the next line is at %d", mark, offset)
				}
			})
			assert.True(t, err == nil && !u.Everyone && len(hosts) == lines && (lines <= 0 || hosts[0] == first),
				"behind the mark are lines of %v (%+v, %v), want %d, the first of %s", hosts, u, err, lines, first)
			assert.True(t, lines != 0 || u.End == mark, "the mark is %d, the end %d", mark, u.End)
		}
		testkit.Until(t, "all of b.test", fetched(21))
		check("", 0)
		must.Get(e.Add(t.Context(), additions(t, web.URL("a.test", "/"))))(t)
		testkit.Until(t, "the request", func() bool { return e.Status().InFlight == 1 })
		must.Get(e.Add(t.Context(),
			additions(t, web.URL("b.test", "/more"), web.URL("b.test", "/again"))))(t)
		testkit.Until(t, "the others", func() bool { return e.store.Counters().Of(storage.Failed) == 2 })
		check("a.test", 3)
		close(release)
		testkit.Until(t, "the first", fetched(22))
		check("", 0)
	})
}

// TestLedgerOffset: the offset that a batch settles lies before every request in flight, in whatever
// order the requests end, and before what a match under way may bring.
func TestLedgerOffset(t *testing.T) {
	for name, test := range map[string]struct {
		kinds []frontier.Kind // of leases that begin, in turn
		ends  []int           // indices of those that have ended
		want  uint64
	}{
		"all in flight":        {[]frontier.Kind{frontier.Page, frontier.Page, frontier.Robots}, nil, 0},
		"the first in flight":  {[]frontier.Kind{frontier.Page, frontier.Page, frontier.Robots}, []int{2, 1}, 0},
		"the second in flight": {[]frontier.Kind{frontier.Page, frontier.Page, frontier.Page}, []int{0, 2}, 1},
		"the last in flight":   {[]frontier.Kind{frontier.Page, frontier.Page, frontier.Page}, []int{1, 0}, 2},
		"none in flight":       {[]frontier.Kind{frontier.Page, frontier.Page}, []int{1, 0}, 2},
		"a match in flight":    {[]frontier.Kind{frontier.Page, frontier.Match, frontier.Page}, []int{0, 2}, 1},
		"a match and a page":   {[]frontier.Kind{frontier.Page, frontier.Page, frontier.Match}, []int{0}, 1},
	} {
		d := testDispatcher(t)
		var results []*work.Result
		for i, kind := range test.kinds {
			l := frontier.Lease{ID: uint64(i), Kind: kind, Robots: new(frontier.RobotsJob)}
			d.enter(&l, time.Now())
			results = append(results, d.flights.entered[i])
		}
		for _, i := range test.ends {
			d.flights.take(results[i])
		}
		d.pending.setMark("something", nil)
		_, b := d.nextBatch()
		if b == nil || b.offset != test.want {
			t.Errorf("%s: the batch is %+v, want one with offset %d", name, b, test.want)
			continue
		}
		// An addition goes before the work of the crawl, which it must not settle.
		d.handedOver(b)
		d.committing = false
		d.enter(&frontier.Lease{ID: 100, Kind: frontier.Page}, time.Now())
		d.flights.take(d.flights.entered[len(results)]) // it has ended, and its outcome is in no batch
		d.addition = &addition{Rows: lists.Rows{Found: make([]storage.Found, 1)}}
		if _, b := d.nextBatch(); b == nil || b.offset != test.want {
			t.Errorf("%s: an addition is %+v, want offset %d", name, b, test.want)
		}
	}
}

// TestReusedResult: a result is used again without anything of its lease before, unless its context has ended.
func TestReusedResult(t *testing.T) {
	f := flights{all: make(map[uint64]*work.Result), working: t.Context()}
	enter := func(id uint64) *work.Result {
		f.enter(&frontier.Lease{ID: id, Kind: frontier.Page}, id, time.Now())
		return f.all[id]
	}
	end := func(res *work.Result) {
		f.take(res)
		f.reuse(res)
	}
	first := enter(1)
	first.RequestEnded, first.Page.Bytes = true, 7
	end(first)
	second := enter(2)
	assert.True(t, second == first && !second.RequestEnded && second.Page.Bytes == 0 && second.Ctx.Err() == nil,
		"the second lease has %+v, want an empty result in the memory of the first", second)
	second.End(fetch.ErrTooSlow)
	end(second)
	if third := enter(3); third == second || third.Ctx.Err() != nil {
		t.Errorf("the third lease has a context that ended with the second: %v", third.Ctx.Err())
	}
}

// testShared is the shared part of an engine that makes no request.
func testShared(o *Options) *Shared {
	s := &Shared{parsers: work.NewParsers(), client: new(fetch.Client)}
	s.quota = quota.NewProcess(o.Live().quota(), s.client, o.Now)
	return s
}
