// Package survey counts the hosts of a frontier by what they wait for, in short steps.
package survey

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Survey is what a walk over all hosts found.
type Survey struct {
	States  map[string]int // hosts by state, as inspect.StateOf has it; nil: no walk has come to its end
	Working int            // hosts that have something to do besides recrawls
	Held    map[string]int // hosts all of whose URLs robots.txt holds, by reason
	Slowest []SlowHost     // the last hosts to be done, that one first
	Walls   map[string]int // hosts behind a wall, by its kind
	Makers  map[string]int // the same by its maker; UnknownMaker: nobody knows
	// Requisites is the seconds until the last of what pages are made of is fetched, at the delays in force.
	Requisites float64
	Parked     int // hosts that demand to be left alone for very long, or whose walls do not end

	finish float64        // seconds until the last host is done that this run does not postpone
	left   uint64         // URLs that wait of the hosts that it does not postpone
	table  *inspect.Table // of all hosts
	next   time.Time      // when the next survey may begin
}

// SlowHost is a host that takes long to be done.
type SlowHost struct {
	Host   string  `json:"host"`
	URLs   int     `json:"urls"`           // that wait
	Finish float64 `json:"finish_seconds"` // until the last of them is fetched, at the delay in force
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
	// share is the part of the dispatcher's time that surveys may take: one in so many. With many
	// hosts they become rarer.
	share = 200
	// StepHosts is how many hosts are inspected before the dispatcher does something else.
	StepHosts = 200
)

// Store is what a survey reads.
type Store interface {
	Counters() storage.Counters
	HostByID(storage.HostID) (storage.Host, error)
}

// Surveyor walks over all hosts in short steps, so that no request waits for it. The owner of the
// frontier owns it.
type Surveyor struct {
	Frontier *frontier.Frontier
	Store    Store
	Now      func() time.Time
	Table    *Table // where a survey's table goes

	found  Survey // by the last walk that came to its end
	begun  Survey // by the one under way
	last   slowest
	from   storage.HostID
	took   time.Duration
	onward chan struct{} // see Onward
}

// Found returns what the last walk found that came to its end. What it holds does not change.
func (s *Surveyor) Found() *Survey { return &s.found }

// Onward is closed while a walk is under way, so that its owner goes on with it when nothing else
// happens; else it is nil.
func (s *Surveyor) Onward() <-chan struct{} { return s.onward }

// FinishIn returns the seconds until all URLs that wait are fetched, of hosts that the run does not
// postpone: at the delays in force and at a rate of the whole crawl (0: no limit).
func (s *Survey) FinishIn(maxRate float64) float64 {
	if maxRate <= 0 {
		return s.finish
	}
	return max(s.finish, float64(s.left)/maxRate)
}

// Begin starts a walk if it is time for one. A few hosts are inspected at once. The run postpones
// hosts that wait for longer than postponedAfter.
func (s *Surveyor) Begin(postponedAfter time.Duration) {
	now := s.Now()
	if s.onward != nil || now.Before(s.found.next) {
		return
	}
	s.begun = Survey{
		States: make(map[string]int), Held: make(map[string]int), Walls: make(map[string]int),
		Makers: make(map[string]int),
		table:  &inspect.Table{At: now, Rows: make([]inspect.Row, 0, s.Store.Counters().Hosts)},
	}
	s.last, s.from, s.took, s.onward = nil, 0, 0, make(chan struct{})
	close(s.onward)
	s.Step(postponedAfter)
}

// Step makes a step of the walk that is under way.
func (s *Surveyor) Step(postponedAfter time.Duration) {
	now := s.Now()
	s.from = s.Frontier.Walk(s.from, StepHosts, now, func(w *frontier.View) { s.count(w, now, postponedAfter) })
	if s.from == 0 {
		s.end()
	}
	s.took += s.Now().Sub(now)
	if s.from == 0 {
		s.found.next = now.Add(s.took * share)
	}
}

// maker returns who makes the wall of a host, as of the last commit.
func (s *Surveyor) maker(host storage.HostID) string {
	h, err := s.Store.HostByID(host)
	if err != nil {
		return UnknownMaker
	}
	state, err := wall.DecodeState(h.Wall)
	if err != nil {
		return UnknownMaker
	}
	return cmp.Or(inspect.KnownMarks().Name(state.Verdict().Wall), UnknownMaker)
}

// UnknownMaker is in Survey.Makers for walls that nobody is known to have made.
const UnknownMaker = "unknown"

// All walks over all hosts at once: for when nothing is dispatched.
func (s *Surveyor) All(postponedAfter time.Duration) {
	s.onward, s.found.next = nil, time.Time{}
	for s.Begin(postponedAfter); s.onward != nil; {
		s.Step(postponedAfter)
	}
}

// count counts one host. postponedAfter is the longest wait for which this run does not postpone
// it.
func (s *Surveyor) count(w *frontier.View, now time.Time, postponedAfter time.Duration) {
	s.begun.States[inspect.StateOf(w, now)]++
	if !w.AtRest {
		s.begun.Working++
	}
	s.begun.table.Add(w, now)
	if w.Wall != wall.KindNone {
		s.begun.Walls[w.Wall.String()]++
		s.begun.Makers[s.maker(w.Host)]++
	}
	if w.Left == 0 {
		return
	}
	s.begun.Requisites = max(s.begun.Requisites, float64(w.Requisites)*w.Delay.Seconds())
	if w.Parked {
		s.begun.Parked++
	}
	if w.Robots != robots.ReasonNone {
		s.begun.Held[w.Robots.String()]++
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
func (s *Surveyor) end() {
	s.found, s.onward = s.begun, nil
	s.Table.set(s.found.table)
	for i := range s.last {
		w := &s.last[i]
		s.found.Slowest = append(s.found.Slowest, SlowHost{
			Host: s.hostName(w.Host), URLs: w.Left, Finish: w.Finish.Seconds(),
		})
	}
	if len(s.found.Slowest) > 0 {
		s.found.finish = s.found.Slowest[0].Finish
	}
}

// hostName returns the name of a host, empty if it cannot be read.
func (s *Surveyor) hostName(id storage.HostID) string {
	h, err := s.Store.HostByID(id)
	if err != nil {
		return ""
	}
	return h.Name
}

// Table is the table of all hosts that the last survey made. It is safe for concurrent use.
type Table struct {
	latest atomic.Pointer[inspect.Table]
	once   sync.Once
	ready  chan struct{} // closed when there is one
}

// NewTable returns one of a crawl whose first survey has not come to its end.
func NewTable() *Table { return &Table{ready: make(chan struct{})} }

// Ready is closed when there is a table.
func (t *Table) Ready() <-chan struct{} { return t.ready }

// Latest returns the table of the last survey. The caller waits for Ready first.
func (t *Table) Latest() *inspect.Table { return t.latest.Load() }

func (t *Table) set(latest *inspect.Table) {
	t.latest.Store(latest)
	t.once.Do(func() { close(t.ready) })
}
