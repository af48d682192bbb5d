package inspect

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// tableView is a view of n hosts, h1.test to hn.test, of a running crawl that knows them all.
func tableView(t testing.TB, n int) *View {
	t.Helper()
	s := must.Get(storage.Open(t.TempDir(), storage.Options{NoSync: true}))(t)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
	})
	table := &Table{At: now}
	var b storage.Batch
	for i := range n {
		b.Ensure = append(b.Ensure, fmt.Sprintf("h%d.test", i+1))
		state := HostStates()[i%3+1] // ready, busy, waiting
		table.Rows = append(table.Rows, Row{
			Host: storage.HostID(i + 1), Left: uint32(i * 7919 % 101), Next: uint32(i * 31 % 17),
			Delay: float32(i % 13), Finish: float32(i % 5),
			State: uint8(slices.Index(HostStates(), state)),
		})
		if len(b.Ensure) == 20_000 || i+1 == n {
			must.Get(s.Commit(&b))(t)
			b = storage.Batch{}
		}
	}
	o := testOptions()
	o.Table = func(context.Context) (*Table, error) { return table, nil }
	return New(s, o)
}

// allPages reads a list to its end.
func allPages(t *testing.T, v *View, q HostQuery) (names []string) {
	t.Helper()
	for pages := 0; ; pages++ {
		page, err := v.HostPage(context.Background(), q)
		must.True(t, err == nil && len(page.Hosts) <= q.Limit && pages <= 1000, "%+v: page %d of %d hosts, %v", q,
			pages, len(page.Hosts), err)
		for i := range page.Hosts {
			names = append(names, page.Hosts[i].Host)
		}
		if page.Next == "" {
			return names
		}
		q.After = page.Next
	}
}

// Whatever the order and the size of a page, all pages together hold every host once, in that
// order.
func TestHostPages(t *testing.T) {
	const n = 500
	v := tableView(t, n)
	table, _ := v.o.Table(context.Background())
	row := func(name string) *Row {
		var id storage.HostID
		fmt.Sscanf(name, "h%d.test", &id)
		return table.row(id)
	}
	later := map[string]func(a, b *Row) bool{ // a may not stand before b
		"waiting": func(a, b *Row) bool { return a.Left < b.Left },
		"delay":   func(a, b *Row) bool { return a.Delay < b.Delay },
		"finish":  func(a, b *Row) bool { return a.Finish < b.Finish },
		"next":    func(a, b *Row) bool { return a.Left == 0 && b.Left > 0 || b.Left > 0 && a.Next > b.Next },
		"found":   func(a, b *Row) bool { return a.Host > b.Host },
		"name":    func(a, b *Row) bool { return fmt.Sprint(a.Host) > fmt.Sprint(b.Host) },
	}
	for sort, wrong := range later {
		for _, limit := range []int{1, 7, n, n + 1} {
			names := allPages(t, v, HostQuery{Sort: sort, Limit: limit})
			for i := range names[1:] {
				must.True(t, !wrong(row(names[i]), row(names[i+1])), "by %s, pages of %d: %s stands before %s", sort,
					limit, names[i], names[i+1])
			}
			slices.Sort(names)
			if names = slices.Compact(names); len(names) != n {
				t.Errorf("by %s, pages of %d: %d different hosts, want %d", sort, limit, len(names), n)
			}
		}
		names := allPages(t, v, HostQuery{Sort: sort, Limit: 10, State: HostBusy})
		if len(names) != 167 || slices.ContainsFunc(names,
			func(name string) bool { return HostStates()[row(name).State] != HostBusy }) {
			t.Errorf("by %s: %d busy hosts", sort, len(names))
		}
	}
	page, err := v.HostPage(context.Background(), HostQuery{Sort: "waiting", Limit: 3, State: HostReady})
	assert.True(t, err == nil && page.Matching == 167, "%d match, %v", page.Matching, err)
}

func TestHostPagesByName(t *testing.T) {
	v := tableView(t, 120)
	names := func(q HostQuery) string {
		q.Sort, q.Limit = "name", 4
		return strings.Join(allPages(t, v, q), " ")
	}
	if got := names(HostQuery{Contains: "h11"}); got != "h11.test h110.test h111.test h112.test h113.test h114.test "+
		"h115.test h116.test h117.test h118.test h119.test" {
		t.Error(got)
	}
	page, err := v.HostPage(context.Background(), HostQuery{Sort: "waiting", Limit: 4, Contains: "h11"})
	assert.True(t, err == nil && page.Matching == 11 && len(page.Hosts) == 4 && page.Next != "",
		"in another order: %d of %d, %v", len(page.Hosts), page.Matching, err)
	assert.Equal(t, names(HostQuery{Under: "h7.test"}), "h7.test")
	assert.Equal(t, names(HostQuery{Under: "other.test"}), "")
}

// manyHosts is a store that says that it has too many hosts for a list without a table.
type manyHosts struct{ Store }

func (manyHosts) Counters() storage.Counters { return storage.Counters{Hosts: maxVisited + 1} }

// The names of many hosts are listed while a crawl that starts has no table yet, or does not run.
func TestHostPagesWithoutTable(t *testing.T) {
	v := tableView(t, 12)
	v.store = manyHosts{v.store}
	v.o.Table = func(context.Context) (*Table, error) { return nil, context.DeadlineExceeded }
	assert.Equal(t, strings.Join(allPages(t, v, HostQuery{Sort: "name", Limit: 2, Contains: "h1"}), " "),
		"h1.test h10.test h11.test h12.test")
	for _, q := range []HostQuery{{Sort: "name", Limit: 2, State: HostReady}, {Sort: "waiting", Limit: 2}} {
		assert.Fails(v.HostPage(t.Context(), q))(t, context.DeadlineExceeded, q)
	}
}

func TestHostPagesThatMakeNoSense(t *testing.T) {
	v := tableView(t, 3)
	for _, q := range []HostQuery{
		{Sort: "waiting", Limit: 1, After: "nonsense"}, {Sort: "waiting", Limit: 1, After: "1.x"},
		{Sort: "delay", Limit: 1, After: "1.99999999999"},
		{Sort: "beauty", Limit: 1}, {Sort: "urls", Limit: 1, After: "1.1"},
	} {
		assert.Fails(v.HostPage(context.Background(), q))(t, ErrQuery, q)
	}
}

// A table may lack hosts that were found after it was made.
func TestRowsOfTable(t *testing.T) {
	table := &Table{Rows: []Row{{Host: 1}, {Host: 2}, {Host: 5}, {Host: 9}}}
	for id := range storage.HostID(12) {
		want := id == 1 || id == 2 || id == 5 || id == 9
		r := table.row(id)
		assert.True(t, (r != nil) == want && (!want || r.Host == id), "host %d: %+v", id, r)
	}
	key := tableKey("delay")
	assert.True(t, key(&Row{Delay: math.MaxFloat32}) < key(&Row{Delay: 1}) && key(&Row{Delay: 1}) < key(&Row{}),
		"longer delays do not come first")
}

// BenchmarkHostPage is one page out of a million hosts.
func BenchmarkHostPage(b *testing.B) {
	const n = 1_000_000
	v := tableView(b, n)
	for _, q := range []HostQuery{
		{Sort: "waiting", Limit: 50}, {Sort: "finish", State: HostWaiting, Limit: 1000},
		{Sort: "found", Limit: 50, After: "0.999000"},
		{Sort: "name", Limit: 50}, {Sort: "name", Limit: 50, Contains: "nowhere"},
	} {
		b.Run(fmt.Sprintf("hosts=%d/sort=%s/state=%s/contains=%s/limit=%d", n, q.Sort, q.State, q.Contains, q.Limit),
			func(b *testing.B) {
				for b.Loop() {
					must.Get(v.HostPage(context.Background(), q))(b)
				}
			})
	}
}

// BenchmarkURLPage is a page for which as many URLs are looked at as may be, and none is found.
func BenchmarkURLPage(b *testing.B) {
	s := must.Get(storage.Open(b.TempDir(), storage.Options{NoSync: true}))(b)
	defer s.Close()
	const n, examined = 200_000, 20_000
	for from := 0; from < n; from += 20_000 {
		var batch storage.Batch
		for i := range 20_000 {
			u := must.Get(weburl.Parse(fmt.Sprintf("http://h%d.test/some/path/%d", i%1000, from+i)))(b)
			batch.Found = append(batch.Found, storage.Found{URL: u, Fingerprint: s.Fingerprint(u), At: now})
		}
		must.Get(s.Commit(&batch))(b)
	}
	v := New(s, testOptions())
	state, reason := storage.Queued, storage.ReasonRobots // no URL has both, though every host has some of the state
	b.Run(fmt.Sprintf("urls=%d/examined=%d", n, examined), func(b *testing.B) {
		for b.Loop() {
			page, err := v.URLPage(context.Background(),
				URLQuery{State: &state, Reason: &reason, Limit: 100, Examine: examined})
			must.True(b, err == nil && page.Next != "", "%v %v", page.Next, err)
		}
	})
}
