package inspect

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Row is one host of a table, small enough for millions of them.
type Row struct {
	Host   storage.HostID
	Left   uint32  // URLs that wait
	Next   uint32  // seconds from Table.At until the next request
	Delay  float32 // seconds
	Finish float32 // seconds
	State  uint8   // index in HostStates
}

// Table holds the state of all hosts of a running crawl at about an instant, sorted by id. Once it
// is complete it is immutable.
type Table struct {
	At   time.Time
	Rows []Row
}

// Add adds the row of a host that was inspected now, which may be later than t.At. Hosts are added
// by rising ids.
func (t *Table) Add(v *frontier.View, now time.Time) {
	until := max(v.Until.Sub(t.At), 0)
	if v.Until.IsZero() {
		until = 0
	}
	t.Rows = append(t.Rows, Row{
		Host: v.Host, Left: uint32(min(uint64(v.Left), math.MaxUint32)),
		Next:  uint32(min(until/time.Second, math.MaxUint32)),
		Delay: float32(v.Delay.Seconds()), Finish: float32(v.Finish.Seconds()),
		State: uint8(slices.Index(HostStates(), StateOf(v, now))),
	})
}

// StateOf returns the state of a host, as hostView.state does, from what the frontier alone knows.
func StateOf(v *frontier.View, now time.Time) string {
	switch {
	case isBusy(v.State):
		return HostBusy
	case v.Paused:
		return HostPaused
	case v.Wall != wall.KindNone:
		return HostWalled
	case v.Left == 0:
		return HostEmpty
	case v.Robots != robots.ReasonNone:
		return HostHeld
	case v.Failing:
		return HostFailing
	case v.Until.After(now):
		return HostWaiting
	}
	return HostReady
}

// row finds a host. It returns nil if the host is not there.
func (t *Table) row(id storage.HostID) *Row {
	// Ids are consecutive, so that usually the index is known.
	if i := int(id) - 1; i >= 0 && i < len(t.Rows) && t.Rows[i].Host == id {
		return &t.Rows[i]
	}
	i, found := slices.BinarySearchFunc(t.Rows, id,
		func(r Row, id storage.HostID) int { return cmp.Compare(r.Host, id) })
	if !found {
		return nil
	}
	return &t.Rows[i]
}

// tableKey returns the sort key of an order of HostSorts, smallest first, or nil for orders that a
// table does not know.
func tableKey(sort string) func(*Row) uint64 {
	most := func(f float32) uint64 { return math.MaxUint32 - uint64(math.Float32bits(max(f, 0))) }
	switch sort {
	case "", "waiting":
		return func(r *Row) uint64 { return math.MaxUint32 - uint64(r.Left) }
	case "delay":
		return func(r *Row) uint64 { return most(r.Delay) }
	case "finish":
		return func(r *Row) uint64 { return most(r.Finish) }
	case SortFound:
		return func(*Row) uint64 { return 0 }
	case "next":
		return func(r *Row) uint64 {
			if r.Left == 0 {
				return math.MaxUint64
			}
			return uint64(r.Next)
		}
	}
	return nil
}

// ranked is a host with its sort key. The id decides between equal keys.
type ranked struct {
	key  uint64
	host storage.HostID
}

func (a ranked) compare(b ranked) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.host, b.host))
}

func (a ranked) before(b ranked) bool { return a.key < b.key || a.key == b.key && a.host < b.host }

// String returns the form that parseRanked reads.
func (a ranked) String() string { return fmt.Sprintf("%x.%d", a.key, a.host) }

func parseRanked(s string) (a ranked, err error) {
	key, host, _ := strings.Cut(s, ".")
	if a.key, err = strconv.ParseUint(key, 16, 64); err == nil {
		var id uint64
		id, err = strconv.ParseUint(host, 10, 32)
		a.host = storage.HostID(id)
	}
	if err != nil {
		return a, fmt.Errorf("%w: %q is not the next of a page of hosts", ErrQuery, s)
	}
	return a, nil
}

// firsts keeps the first hosts of an order after a position in it: a heap whose top is the last of
// them.
type firsts struct {
	limit int
	after ranked
	begun bool // after is set
	kept  []ranked
	left  bool // there are more after those kept
}

// rejects reports whether a host comes after those kept, as almost all of a million do.
func (f *firsts) rejects(a ranked) bool { return len(f.kept) == f.limit && f.kept[0].before(a) }

func (f *firsts) add(a ranked) {
	switch {
	case f.begun && !f.after.before(a):
	case f.rejects(a):
		f.left = true
	case len(f.kept) < f.limit:
		heap.Push(f, a)
	default:
		f.kept[0], f.left = a, true
		heap.Fix(f, 0)
	}
}

// page returns the hosts kept, in order, and the position of the next page.
func (f *firsts) page() (page []ranked, next string) {
	slices.SortFunc(f.kept, ranked.compare)
	if f.left {
		next = f.kept[len(f.kept)-1].String()
	}
	return f.kept, next
}

// Len implements heap.Interface.
func (f *firsts) Len() int { return len(f.kept) }

// Less implements heap.Interface.
func (f *firsts) Less(i, j int) bool { return f.kept[i].compare(f.kept[j]) > 0 }

// Swap implements heap.Interface.
func (f *firsts) Swap(i, j int) { f.kept[i], f.kept[j] = f.kept[j], f.kept[i] }

// Push implements heap.Interface.
func (f *firsts) Push(a any) { f.kept = append(f.kept, a.(ranked)) }

// Pop implements heap.Interface.
func (f *firsts) Pop() any {
	a := f.kept[len(f.kept)-1]
	f.kept = f.kept[:len(f.kept)-1]
	return a
}

// fromTable returns a page of the hosts in a table.
func (v *View) fromTable(ctx context.Context, t *Table, q HostQuery, key func(*Row) uint64) (HostPage, error) {
	best := firsts{limit: q.Limit, begun: q.After != ""}
	if best.begun {
		var err error
		if best.after, err = parseRanked(q.After); err != nil {
			return HostPage{}, err
		}
	}
	named, err := v.named(q)
	if err != nil {
		return HostPage{}, err
	}
	state, matching := slices.Index(HostStates(), q.State), 0
	for i := range t.Rows {
		r := &t.Rows[i]
		if state >= 0 && int(r.State) != state || named != nil && !named[r.Host] {
			continue
		}
		matching++
		if a := (ranked{key(r), r.Host}); best.rejects(a) {
			best.left = true
		} else {
			best.add(a)
		}
	}
	kept, next := best.page()
	ids := make([]storage.HostID, len(kept))
	for i := range kept {
		ids[i] = kept[i].host
	}
	hosts, err := v.hostsOf(ctx, ids)
	return HostPage{Hosts: hosts, Matching: matching, Next: next}, err
}

// hostsOf describes hosts by their ids.
func (v *View) hostsOf(ctx context.Context, ids []storage.HostID) ([]Host, error) {
	hosts := make([]Host, 0, len(ids))
	for part := range slices.Chunk(ids, LivePage) {
		page := make([]hostView, 0, len(part))
		for _, id := range part {
			h, err := v.store.HostByID(id)
			if err != nil {
				return nil, err
			}
			s, err := v.newHostView(&h, v.o.Now())
			if err != nil {
				return nil, fmt.Errorf("host %s: %w", h.Name, err)
			}
			page = append(page, s)
		}
		err := v.visitPage(ctx, page, "", func(s *hostView) error {
			if err := v.explain("", s); err != nil {
				return err
			}
			hosts = append(hosts, s.Host)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return hosts, nil
}
