package crawl

import (
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// survey is what a walk over all hosts found.
type survey struct {
	places  map[string]int
	held    map[string]int // hosts of which robots.txt holds all that waits, by reason
	finish  float64        // seconds until the last host is done that this run does not postpone
	slowest string         // that host
	left    int            // its URLs
	parked  int            // hosts that asked to be left alone for very long
	next    time.Time
}

// surveyShare is the part of the dispatcher's time that surveys may take: one
// in so many. With many hosts they become rarer instead of holding up requests.
const surveyShare = 200

// surveyHosts walks over all hosts.
func (r *run) surveyHosts(now time.Time) survey {
	s := survey{places: r.f.Places(), held: make(map[string]int)}
	slowest := storage.NoHost
	r.f.Waiting(now, func(w frontier.Waiting) {
		if w.Parked {
			s.parked++
		}
		if w.Robots != robots.ReasonNone {
			s.held[w.Robots.String()]++
		}
		postponed := r.o.ExitWhenDone && w.Until.Sub(now) > r.o.GiveUpAfter
		if f := w.Finish.Seconds(); f > s.finish && w.Robots == robots.ReasonNone && !postponed {
			s.finish, s.left, slowest = f, w.Left, w.Host
		}
	})
	if slowest != storage.NoHost {
		s.slowest = r.hostName(slowest)
	}
	end := time.Now()
	s.next = end.Add(end.Sub(now) * surveyShare)
	return s
}
