package crawl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/wall"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// survey is what a walk over all hosts found.
type survey struct {
	states  map[string]int // hosts by state
	held    map[string]int // hosts all of whose URLs robots.txt holds, by reason
	finish  float64        // seconds until the last host is done that this run does not postpone
	left    uint64         // URLs that wait of the hosts that it does not postpone
	slowest []SlowHost     // the last hosts, that one first
	walls   map[string]int // hosts behind a wall, by its kind
	parked  int            // hosts that demand to be left alone for very long, or whose walls do not end
	table   *inspect.Table // of all hosts
	next    time.Time      // when the next survey may begin
}

// slowestHosts is how many of the slowest hosts the status names.
const slowestHosts = 10

// slowest are the hosts that are done last, the last of all first.
type slowest []frontier.View

// add puts a host among them if it belongs there.
func (s *slowest) add(w *frontier.View) {
	if len(*s) == slowestHosts && w.Finish <= (*s)[slowestHosts-1].Finish {
		return
	}
	at, _ := slices.BinarySearchFunc(*s, w, func(have frontier.View, w *frontier.View) int {
		return cmp.Or(cmp.Compare(w.Finish, have.Finish), cmp.Compare(have.Host, w.Host))
	})
	*s = slices.Insert(*s, at, *w)
	*s = (*s)[:min(len(*s), slowestHosts)]
}

const (
	// surveyShare is the part of the dispatcher's time that surveys may take: one in so many. With
	// many hosts they become rarer.
	surveyShare = 200
	// surveyStep is how many hosts are inspected before the dispatcher does something else.
	surveyStep = 200
)

// surveyStore is what a survey reads.
type surveyStore interface {
	Counters() storage.Counters
	HostByID(storage.HostID) (storage.Host, error)
}

// surveyor walks over all hosts in short steps, so that no request waits for it. The dispatcher
// owns it.
type surveyor struct {
	f     *frontier.Frontier
	store surveyStore
	now   func() time.Time
	table *hostTable // where a survey's table goes
	found survey     // by the last walk that came to its end
	begun survey     // by the one under way
	last  slowest
	from  storage.HostID
	took  time.Duration
	// onward is closed while a walk is under way, so that the dispatcher goes on with it when
	// nothing else happens; else it is nil.
	onward chan struct{}
}

// finishIn returns the seconds until all URLs that wait are fetched, of hosts that the run does not
// postpone: at the delays in force and at a rate of the whole crawl (0: no limit).
func (s *survey) finishIn(maxRate float64) float64 {
	if maxRate <= 0 {
		return s.finish
	}
	return max(s.finish, float64(s.left)/maxRate)
}

// begin starts a walk if it is time for one. A few hosts are inspected at once. The run postpones
// hosts that wait for longer than postponedAfter.
func (s *surveyor) begin(postponedAfter time.Duration) {
	now := s.now()
	if s.onward != nil || now.Before(s.found.next) {
		return
	}
	s.begun = survey{
		states: make(map[string]int), held: make(map[string]int), walls: make(map[string]int),
		table: &inspect.Table{At: now, Rows: make([]inspect.Row, 0, s.store.Counters().Hosts)},
	}
	s.last, s.from, s.took, s.onward = nil, 0, 0, make(chan struct{})
	close(s.onward)
	s.step(postponedAfter)
}

// step makes a step of the walk that is under way.
func (s *surveyor) step(postponedAfter time.Duration) {
	now := s.now()
	s.from = s.f.Walk(s.from, surveyStep, now, func(w *frontier.View) { s.count(w, now, postponedAfter) })
	if s.from == 0 {
		s.end()
	}
	s.took += time.Since(now)
	if s.from == 0 {
		s.found.next = now.Add(s.took * surveyShare)
	}
}

// all walks over all hosts at once: for when nothing is dispatched.
func (s *surveyor) all(postponedAfter time.Duration) {
	s.onward, s.found.next = nil, time.Time{}
	for s.begin(postponedAfter); s.onward != nil; {
		s.step(postponedAfter)
	}
}

// count counts one host. postponedAfter is the longest wait for which this run does not postpone
// it.
func (s *surveyor) count(w *frontier.View, now time.Time, postponedAfter time.Duration) {
	s.begun.states[w.State]++
	s.begun.table.Add(w, now)
	if w.Wall != wall.KindNone {
		s.begun.walls[w.Wall.String()]++
	}
	if w.Left == 0 {
		return
	}
	if w.Parked {
		s.begun.parked++
	}
	if w.Robots != robots.ReasonNone {
		s.begun.held[w.Robots.String()]++
	}
	if w.Paused || w.Robots != robots.ReasonNone || w.Until.Sub(now) > postponedAfter {
		return
	}
	if !w.Budget {
		s.begun.left += uint64(w.Left)
	}
	if w.Finish > 0 {
		s.last.add(w)
	}
}

// end ends a walk.
func (s *surveyor) end() {
	s.found, s.onward = s.begun, nil
	s.table.set(s.found.table)
	for i := range s.last {
		w := &s.last[i]
		s.found.slowest = append(s.found.slowest, SlowHost{
			Host: s.hostName(w.Host), URLs: w.Left, Finish: w.Finish.Seconds(),
		})
	}
	if len(s.found.slowest) > 0 {
		s.found.finish = s.found.slowest[0].Finish
	}
}

// hostName returns the name of a host, empty if it cannot be read.
func (s *surveyor) hostName(id storage.HostID) string {
	h, err := s.store.HostByID(id)
	if err != nil {
		return ""
	}
	return h.Name
}

// maxUnlisted is how many hosts may be listed from the store while no dispatcher runs.
const maxUnlisted = 100_000

// hostTable is the table of all hosts that the last survey made. It is safe for concurrent use.
type hostTable struct {
	latest atomic.Pointer[inspect.Table]
	once   sync.Once
	ready  chan struct{} // closed when there is one
}

func newHostTable() *hostTable { return &hostTable{ready: make(chan struct{})} }

func (t *hostTable) set(latest *inspect.Table) {
	t.latest.Store(latest)
	t.once.Do(func() { close(t.ready) })
}

// hosts is inspect.Options.Table. It waits only if the first survey of a run has not come to its
// end.
func (e *Engine) hosts(ctx context.Context) (*inspect.Table, error) {
	m := e.mailbox.Load()
	if !m.isOpen() {
		return e.noTable()
	}
	select {
	case <-e.table.ready:
		return e.table.latest.Load(), nil
	case <-m.closed:
		return e.noTable()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noTable is the answer while no dispatcher runs: the hosts are listed from the store, if there are
// few.
func (e *Engine) noTable() (*inspect.Table, error) {
	if e.store.Counters().Hosts > maxUnlisted {
		return nil, fmt.Errorf("list the hosts: %w", ErrNotRunning)
	}
	return nil, nil
}
