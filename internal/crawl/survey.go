package crawl

import (
	"cmp"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// survey is what a walk over all hosts found.
type survey struct {
	places  map[string]int
	held    map[string]int // hosts of which robots.txt holds all that waits, by reason
	finish  float64        // seconds until the last host is done that this run does not postpone
	slowest []SlowHost     // the last hosts, that one first
	parked  int            // hosts that asked to be left alone for very long
	table   *inspect.Table // of all hosts
	next    time.Time
}

// slowestHosts is how many of the slowest hosts the status names.
const slowestHosts = 10

// slowest are the hosts that are done last, the last of all first.
type slowest []frontier.Waiting

// add puts a host among them if it belongs there.
func (s *slowest) add(w *frontier.Waiting) {
	if len(*s) == slowestHosts && w.Finish <= (*s)[slowestHosts-1].Finish {
		return
	}
	at, _ := slices.BinarySearchFunc(*s, w, func(have frontier.Waiting, w *frontier.Waiting) int {
		return cmp.Or(cmp.Compare(w.Finish, have.Finish), cmp.Compare(have.Host, w.Host))
	})
	*s = slices.Insert(*s, at, *w)
	*s = (*s)[:min(len(*s), slowestHosts)]
}

// surveyShare is the part of the dispatcher's time that surveys may take: one in so many. With many hosts they become rarer.
const surveyShare = 200

// surveyStep is how many hosts are looked at before the dispatcher does something else.
const surveyStep = 200

// surveyor walks over all hosts in short steps, so that no request waits for it.
type surveyor struct {
	found  survey // by the last walk that came to its end
	begun  survey // by the one under way
	last   slowest
	from   storage.HostID
	spent  time.Duration
	onward chan struct{} // closed while a walk is under way, so that the dispatcher goes on with it when nothing else happens; else nil
}

// beginSurvey starts a walk if it is time for one. A few hosts are looked at at once.
func (r *run) beginSurvey(now time.Time) {
	s := &r.surveyor
	if s.onward != nil || now.Before(s.found.next) {
		return
	}
	s.begun = survey{places: make(map[string]int), held: make(map[string]int)}
	s.begun.table = &inspect.Table{At: now, Rows: make([]inspect.Row, 0, r.store.Counters().Hosts)}
	s.last, s.from, s.spent, s.onward = nil, 0, 0, make(chan struct{})
	close(s.onward)
	r.surveyHosts()
}

// surveyHosts goes on with the walk that is under way.
func (r *run) surveyHosts() {
	s, now := &r.surveyor, r.now()
	s.from = r.f.Walk(s.from, surveyStep, now, func(w *frontier.Waiting) { r.lookAt(w, now) })
	if s.from == 0 {
		r.surveyed()
	}
	s.spent += time.Since(now)
	if s.from == 0 {
		s.found.next = now.Add(s.spent * surveyShare)
	}
}

// lookAt counts one host.
func (r *run) lookAt(w *frontier.Waiting, now time.Time) {
	s := &r.surveyor
	s.begun.places[w.Place]++
	s.begun.table.Rows = append(s.begun.table.Rows, rowOf(w, s.begun.table.At, now))
	if w.Left == 0 {
		return
	}
	if w.Parked {
		s.begun.parked++
	}
	if w.Robots != robots.ReasonNone {
		s.begun.held[w.Robots.String()]++
	}
	postponed := r.ends() && w.Until.Sub(now) > r.force.Load().GiveUpAfter
	if w.Finish > 0 && w.Robots == robots.ReasonNone && !postponed {
		s.last.add(w)
	}
}

// surveyed is the end of a walk.
func (r *run) surveyed() {
	s := &r.surveyor
	s.found, s.onward = s.begun, nil
	r.table.Store(s.found.table)
	select {
	case <-r.desk.surveyed:
	default:
		close(r.desk.surveyed)
	}
	for i := range s.last {
		s.found.slowest = append(s.found.slowest, SlowHost{Host: r.hostName(s.last[i].Host), URLs: s.last[i].Left, Finish: s.last[i].Finish.Seconds()})
	}
	if len(s.found.slowest) > 0 {
		s.found.finish = s.found.slowest[0].Finish
	}
}

// surveyAll walks over all hosts at once: for when nothing is dispatched.
func (r *run) surveyAll() {
	r.surveyor.onward, r.surveyor.found.next = nil, time.Time{}
	r.beginSurvey(r.now())
	for r.surveyor.onward != nil {
		r.surveyHosts()
	}
}
