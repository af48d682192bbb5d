package crawl

import (
	"cmp"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/robots"
)

// survey is what a walk over all hosts found.
type survey struct {
	places  map[string]int
	held    map[string]int // hosts of which robots.txt holds all that waits, by reason
	finish  float64        // seconds until the last host is done that this run does not postpone
	slowest []SlowHost     // the last hosts, that one first
	parked  int            // hosts that asked to be left alone for very long
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

// surveyShare is the part of the dispatcher's time that surveys may take: one
// in so many. With many hosts they become rarer instead of holding up requests.
const surveyShare = 200

// surveyHosts walks over all hosts.
func (r *run) surveyHosts(now time.Time) survey {
	s := survey{places: r.f.Places(), held: make(map[string]int)}
	var last slowest
	r.f.Waiting(now, func(w frontier.Waiting) {
		if w.Parked {
			s.parked++
		}
		if w.Robots != robots.ReasonNone {
			s.held[w.Robots.String()]++
		}
		postponed := r.ends() && w.Until.Sub(now) > r.force.Load().GiveUpAfter
		if w.Finish > 0 && w.Robots == robots.ReasonNone && !postponed {
			last.add(&w)
		}
	})
	for i := range last {
		s.slowest = append(s.slowest, SlowHost{Host: r.hostName(last[i].Host), URLs: last[i].Left, Finish: last[i].Finish.Seconds()})
	}
	if len(s.slowest) > 0 {
		s.finish = s.slowest[0].Finish
	}
	end := time.Now()
	s.next = end.Add(end.Sub(now) * surveyShare)
	return s
}
