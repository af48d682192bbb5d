package inspect

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// HostQuery says which hosts are wanted, and in which order.
type HostQuery struct {
	State string // one of HostStates; empty: all
	Sort  string // one of HostOrders; empty: the first of them
	Limit int    // 0: no limit, which only OrderFound can do

	// Of View.HostPage only.
	After    string // HostPage.Next of the page before
	Under    string // a domain: only it and the hosts below it, in the order of names
	Contains string // a part of the name, in the order of names
}

// OrderFound is the order in which the hosts were found. It alone keeps nothing in memory.
const OrderFound = "found"

// MaxSorted is how many hosts a query may put in order.
const MaxSorted = 10_000

// HostOrders are the names of all orders: most or longest first, names by their words from the right, and the soonest next first.
func HostOrders() []string {
	return []string{"waiting", "urls", "requests", "bytes", "delay", "finish", "next", "name", OrderFound}
}

// Check says what is wrong with a query.
func (q HostQuery) Check() error {
	switch {
	case (q.Under != "" || q.Contains != "") && q.Sort != "name":
		return errors.New("hosts of a domain, or with a part of a name, come in the order of names: sort by name")
	case q.State != "" && !slices.Contains(HostStates(), q.State):
		return fmt.Errorf("%q is not a state of a host (allowed: %s)", q.State, strings.Join(HostStates(), ", "))
	case q.Sort != "" && !slices.Contains(HostOrders(), q.Sort):
		return fmt.Errorf("hosts cannot be sorted by %q (allowed: %s)", q.Sort, strings.Join(HostOrders(), ", "))
	case q.Limit < 0:
		return fmt.Errorf("the limit is %d, should be 0 or more", q.Limit)
	case q.Sort != OrderFound && (q.Limit == 0 || q.Limit > MaxSorted):
		return fmt.Errorf("a sorted list has at most %d hosts: take a limit from 1 to that, or sort by %s", MaxSorted, OrderFound)
	}
	return nil
}

// Hosts calls each for the hosts that a query is for. It returns how many there are, without the limit; with OrderFound it stops
// at the limit and counts those it saw. The Host is each's only during the call.
func (v *View) Hosts(ctx context.Context, q HostQuery, each func(*Host) error) (matching int, err error) {
	if err := q.Check(); err != nil {
		return 0, err
	}
	if q.Sort == OrderFound {
		return v.hostsFound(ctx, q, each)
	}
	best := ranking{less: order(q.Sort), limit: q.Limit}
	err = v.visit(ctx, q.State, func(s *standing) error {
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
	err = v.visit(ctx, q.State, func(s *standing) error {
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

// explain looks at robots.txt too, if the query's state has not made that necessary already.
func (v *View) explain(state string, s *standing) error {
	if state != "" || s.live != nil || s.Waiting == 0 {
		return nil
	}
	h, err := v.store.HostByID(s.id)
	if err != nil {
		return err
	}
	return v.hold(s, &h, v.o.Now())
}

// visit calls f for every host of a state. It asks the running crawl about a page of them at a time.
func (v *View) visit(ctx context.Context, state string, f func(*standing) error) error {
	page := make([]standing, 0, LivePage)
	flush := func() error {
		err := v.visitPage(ctx, page, state, f)
		page = page[:0]
		return err
	}
	err := v.store.Hosts(func(h *storage.Host) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := v.stand(h, v.o.Now())
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

func (v *View) visitPage(ctx context.Context, page []standing, state string, f func(*standing) error) error {
	if err := v.askLive(ctx, page); err != nil {
		return err
	}
	now := v.o.Now()
	for i := range page {
		s := &page[i]
		s.settle(now)
		if state != "" && s.live == nil && s.Waiting > 0 {
			h, err := v.store.HostByID(s.id)
			if err != nil {
				return err
			}
			if err := v.hold(s, &h, now); err != nil {
				return err
			}
		}
		if state != "" && s.State != state {
			continue
		}
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

func (v *View) askLive(ctx context.Context, page []standing) error {
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
	known := make(map[storage.HostID]*Live, len(answers))
	for i := range answers {
		known[answers[i].Host] = &answers[i]
	}
	for i := range page {
		page[i].live = known[page[i].id]
	}
	return nil
}

// order is how an order compares, names deciding where nothing else does.
func order(name string) func(a, b *standing) int {
	by := map[string]func(a, b *standing) int{
		"urls":     func(a, b *standing) int { return cmp.Compare(b.Known, a.Known) },
		"requests": func(a, b *standing) int { return cmp.Compare(b.Requests, a.Requests) },
		"bytes":    func(a, b *standing) int { return cmp.Compare(b.Bytes, a.Bytes) },
		"delay":    func(a, b *standing) int { return cmp.Compare(b.Delay, a.Delay) },
		"finish":   func(a, b *standing) int { return cmp.Compare(b.Finish, a.Finish) },
		"next":     bySoonest,
		"name": func(a, b *standing) int {
			return cmp.Compare(weburl.ReverseHost(a.Host.Host), weburl.ReverseHost(b.Host.Host))
		},
	}[name]
	if by == nil {
		by = func(a, b *standing) int { return cmp.Compare(b.Waiting, a.Waiting) }
	}
	return func(a, b *standing) int {
		if c := by(a, b); c != 0 {
			return c
		}
		return cmp.Compare(a.Host.Host, b.Host.Host)
	}
}

// bySoonest puts hosts without work last.
func bySoonest(a, b *standing) int {
	if c := cmp.Compare(min(b.Waiting, 1), min(a.Waiting, 1)); c != 0 {
		return c
	}
	return a.Next.Compare(b.Next)
}

// ranking keeps the first of an order: a heap whose top is the last of them.
type ranking struct {
	less  func(a, b *standing) int
	limit int
	kept  []standing
}

func (r *ranking) add(s *standing) {
	switch {
	case len(r.kept) < r.limit:
		heap.Push(r, *s)
	case r.less(s, &r.kept[0]) < 0:
		r.kept[0] = *s
		heap.Fix(r, 0)
	}
}

func (r *ranking) sorted() []standing {
	slices.SortFunc(r.kept, func(a, b standing) int { return r.less(&a, &b) })
	return r.kept
}

// Len is part of heap.Interface.
func (r *ranking) Len() int { return len(r.kept) }

// Less is part of heap.Interface.
func (r *ranking) Less(i, j int) bool { return r.less(&r.kept[i], &r.kept[j]) > 0 }

// Swap is part of heap.Interface.
func (r *ranking) Swap(i, j int) { r.kept[i], r.kept[j] = r.kept[j], r.kept[i] }

// Push is part of heap.Interface.
func (r *ranking) Push(s any) { r.kept = append(r.kept, s.(standing)) }

// Pop is part of heap.Interface.
func (r *ranking) Pop() any {
	last := len(r.kept) - 1
	s := r.kept[last]
	r.kept = r.kept[:last]
	return s
}
