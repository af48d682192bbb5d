package inspect

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// HostQuery selects and sorts hosts.
type HostQuery struct {
	State string // one of HostFilters; empty: all
	Sort  string // one of HostSorts; empty: the first of them
	Limit int    // 0: no limit, only with SortFound

	Under    string // a domain: only it and the hosts below it
	Contains string // a part of the name
	After    string // HostPage.Next of the previous page; of View.HostPage only
}

// named reports whether a query selects a host by its name.
func (q *HostQuery) named(name string) bool {
	return strings.Contains(name, q.Contains) &&
		(q.Under == "" || name == q.Under || strings.HasSuffix(name, "."+q.Under))
}

// SortFound is the order in which the hosts were found. Only this order keeps nothing in memory.
const SortFound = "found"

// MaxSorted is how many hosts a query may sort.
const MaxSorted = 10_000

// HostSorts returns the names of all orders: numbers largest first, names by their labels from the
// right, and next soonest first.
func HostSorts() []string {
	return []string{"waiting", "urls", "requests", "bytes", "failures", "delay", "finish", "next", "name", SortFound}
}

// Check returns what is wrong with a query.
func (q HostQuery) Check() error {
	switch {
	case q.State != "" && q.State != oldFailing && !slices.Contains(HostFilters(), q.State):
		return fmt.Errorf("%q is not a state of a host (allowed: %s)", q.State, strings.Join(HostFilters(), ", "))
	case q.Sort != "" && !slices.Contains(HostSorts(), q.Sort):
		return fmt.Errorf("hosts cannot be sorted by %q (allowed: %s)", q.Sort, strings.Join(HostSorts(), ", "))
	case q.Limit < 0:
		return fmt.Errorf("the limit is %d, should be 0 or more", q.Limit)
	case q.Sort != SortFound && (q.Limit == 0 || q.Limit > MaxSorted):
		return fmt.Errorf("a sorted list has at most %d hosts: set a limit from 1 to that, or sort by %s", MaxSorted,
			SortFound)
	}
	return nil
}

// Hosts calls each for the hosts that match a query. It returns how many match, without the limit;
// with SortFound it stops at the limit and counts the hosts up to it. The Host is valid only
// during the call.
func (v *View) Hosts(ctx context.Context, q HostQuery, each func(*Host) error) (matching int, err error) {
	if err := q.Check(); err != nil {
		return 0, err
	}
	if q.Sort == SortFound {
		return v.hostsFound(ctx, q, each)
	}
	best := ranking{less: compareBy(q.Sort), limit: q.Limit}
	err = v.visit(ctx, q, func(s *hostView) error {
		matching++
		best.add(s)
		return nil
	})
	if err != nil {
		return matching, err
	}
	for _, s := range best.sorted() {
		if err := v.explain(q.State, &s); err != nil {
			return matching, err
		}
		if err := each(&s.Host); err != nil {
			return matching, err
		}
	}
	return matching, nil
}

func (v *View) hostsFound(ctx context.Context, q HostQuery, each func(*Host) error) (matching int, err error) {
	err = v.visit(ctx, q, func(s *hostView) error {
		if matching++; q.Limit > 0 && matching > q.Limit {
			return storage.ErrStop
		}
		if err := v.explain(q.State, s); err != nil {
			return err
		}
		return each(&s.Host)
	})
	return matching, err
}

// explain adds what a walk over the store leaves out, unless the state of the query required it already.
func (v *View) explain(state string, s *hostView) error {
	if state != "" {
		return nil
	}
	return v.complete(s, v.o.Now())
}

// complete adds the wall of a host and, if no crawl knows the host, whether robots.txt holds it.
func (v *View) complete(s *hostView, now time.Time) error {
	h, err := v.store.HostByID(s.id)
	if err == nil {
		err = s.seeWall(&h)
	}
	if err != nil {
		return err
	}
	s.State = s.state()
	return v.hold(s, &h, now)
}

// visit calls f for every host that a query selects. It gets the hosts from the running crawl a page at a
// time.
func (v *View) visit(ctx context.Context, q HostQuery, f func(*hostView) error) error {
	page := make([]hostView, 0, LivePage)
	flush := func() error {
		err := v.visitPage(ctx, page, q.State, f)
		page = page[:0]
		return err
	}
	err := v.store.Hosts(func(h *storage.Host) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !q.named(h.Name) {
			return nil
		}
		s, err := v.newHostView(h, v.o.Now())
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		if page = append(page, s); len(page) == LivePage {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == storage.ErrStop {
		return nil
	}
	return err
}

func (v *View) visitPage(ctx context.Context, page []hostView, state string, f func(*hostView) error) error {
	if err := v.addLive(ctx, page); err != nil {
		return err
	}
	now := v.o.Now()
	for i := range page {
		s := &page[i]
		s.setState(now)
		if state != "" && (s.live == nil || state == HostSuspected) {
			if err := v.complete(s, now); err != nil {
				return err
			}
		}
		if !s.in(state) {
			continue
		}
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// in reports whether the host is in a state of a query.
func (s *hostView) in(state string) bool {
	switch state {
	case "":
		return true
	case HostSuspected:
		return s.Suspected
	case oldFailing:
		return s.State == HostFailing
	}
	return s.State == state
}

func (v *View) addLive(ctx context.Context, page []hostView) error {
	if v.o.Live == nil || len(page) == 0 {
		return nil
	}
	ids := make([]storage.HostID, len(page))
	for i := range page {
		ids[i] = page[i].id
	}
	answers, err := v.o.Live(ctx, ids)
	if err != nil {
		return err
	}
	known := make(map[storage.HostID]*frontier.View, len(answers))
	for i := range answers {
		known[answers[i].Host] = &answers[i]
	}
	for i := range page {
		page[i].live = known[page[i].id]
	}
	return nil
}

// compareBy compares hosts, by name if they are equal otherwise.
func compareBy(name string) func(a, b *hostView) int {
	by := map[string]func(a, b *hostView) int{
		"urls":     func(a, b *hostView) int { return cmp.Compare(b.Known, a.Known) },
		"requests": func(a, b *hostView) int { return cmp.Compare(b.Requests, a.Requests) },
		"bytes":    func(a, b *hostView) int { return cmp.Compare(b.Bytes, a.Bytes) },
		"failures": func(a, b *hostView) int {
			return cmp.Or(cmp.Compare(b.FailureShare, a.FailureShare),
				cmp.Compare(b.URLs[storage.Failed], a.URLs[storage.Failed]))
		},
		"delay":  func(a, b *hostView) int { return cmp.Compare(b.Delay, a.Delay) },
		"finish": func(a, b *hostView) int { return cmp.Compare(b.Finish, a.Finish) },
		"next":   bySoonest,
		"name": func(a, b *hostView) int {
			return cmp.Compare(weburl.ReverseHost(a.Host.Host), weburl.ReverseHost(b.Host.Host))
		},
	}[name]
	if by == nil {
		by = func(a, b *hostView) int { return cmp.Compare(b.Waiting, a.Waiting) }
	}
	return func(a, b *hostView) int {
		if c := by(a, b); c != 0 {
			return c
		}
		return cmp.Compare(a.Host.Host, b.Host.Host)
	}
}

// bySoonest puts hosts without work last.
func bySoonest(a, b *hostView) int {
	if c := cmp.Compare(min(b.Waiting, 1), min(a.Waiting, 1)); c != 0 {
		return c
	}
	return a.Next.Compare(b.Next)
}

// ranking keeps the first hosts of an order: a heap whose top is the last of them.
type ranking struct {
	less  func(a, b *hostView) int
	limit int
	kept  []hostView
}

func (r *ranking) add(s *hostView) {
	switch {
	case len(r.kept) < r.limit:
		heap.Push(r, *s)
	case r.less(s, &r.kept[0]) < 0:
		r.kept[0] = *s
		heap.Fix(r, 0)
	}
}

func (r *ranking) sorted() []hostView {
	slices.SortFunc(r.kept, func(a, b hostView) int { return r.less(&a, &b) })
	return r.kept
}

// Len implements heap.Interface.
func (r *ranking) Len() int { return len(r.kept) }

// Less implements heap.Interface.
func (r *ranking) Less(i, j int) bool { return r.less(&r.kept[i], &r.kept[j]) > 0 }

// Swap implements heap.Interface.
func (r *ranking) Swap(i, j int) { r.kept[i], r.kept[j] = r.kept[j], r.kept[i] }

// Push implements heap.Interface.
func (r *ranking) Push(s any) { r.kept = append(r.kept, s.(hostView)) }

// Pop implements heap.Interface.
func (r *ranking) Pop() any {
	last := len(r.kept) - 1
	s := r.kept[last]
	r.kept = r.kept[:last]
	return s
}
