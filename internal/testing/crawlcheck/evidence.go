package crawlcheck

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/testing/testweb"
)

// evidence is what a station is judged by: what the web has recorded of its hosts.
type evidence struct {
	hosts  []*host
	log    testweb.Log // of its hosts; of all if it has none
	all    testweb.Log // of all hosts
	web    int         // the number of all hosts
	end    time.Time   // of the run
	exited bool        // the crawler ended by itself
	quiet  bool        // the run ended because there was no request for a while
	gap    time.Duration
	starts []time.Time // of the crawler; more than one: it was killed before each but the first

	why   string // it is broken
	proof testweb.Log
	lack  []string
}

func (e *evidence) host() *host { return e.hosts[0] }

// broken says that the station is broken, and by which requests. The first reason counts.
func (e *evidence) broken(why string, by ...testweb.Request) {
	if e.why == "" {
		e.why = why
	}
	e.proof = append(e.proof, by...)
}

// missing says what a verdict lacks.
func (e *evidence) missing(why string) { e.lack = append(e.lack, why) }

// page returns the requests for a page.
func (e *evidence) page(h *host, path string) testweb.Log {
	want := decoded(h.own(path))
	return e.log.Host(h.name).Filter(func(q testweb.Request) bool { return decoded(q.Path) == want })
}

// under returns the requests for pages whose path begins like this.
func (e *evidence) under(path string) testweb.Log {
	prefix := e.host().own(path)
	return e.log.Host(e.host().name).Filter(func(q testweb.Request) bool { return strings.HasPrefix(q.Path, prefix) })
}

// after returns the requests that began after an instant.
func after(l testweb.Log, at time.Time) testweb.Log {
	return l.Filter(func(q testweb.Request) bool { return q.Start.After(at) })
}

// status returns the requests with one of these statuses.
func status(l testweb.Log, codes ...int) testweb.Log {
	return l.Filter(func(q testweb.Request) bool { return slices.Contains(codes, q.Status) })
}

// The numbers that tell a crawler that has stopped from one that is busy elsewhere or hangs.
const (
	stillness  = 15 * time.Second
	elsewhere  = 20 // requests to other hosts meanwhile
	smallestOf = 5  // hosts, among which a crawler may have nothing else to do
)

// hasStopped reports whether the crawler left the host of l alone for a while although it could have gone on: longer
// than is usual for it there, and while it made requests elsewhere, or had ended, or had nothing else to do.
func (e *evidence) hasStopped(l testweb.Log) bool {
	if len(l) == 0 || e.exited {
		return len(l) > 0
	}
	gaps := l.Gaps()
	lengths := make([]time.Duration, len(gaps))
	for i, g := range gaps {
		lengths[i] = g.Length
	}
	slices.Sort(lengths)
	wait := stillness
	if len(lengths) > 2 {
		wait = max(wait, 5*lengths[len(lengths)/2])
	}
	for i, q := range l {
		next := e.end
		if i+1 < len(l) {
			next = l[i+1].Start
		} else if e.quiet && e.end.Sub(q.End) > wait {
			return true
		}
		others := after(e.all, q.End).Filter(func(o testweb.Request) bool { return o.Start.Before(next) })
		if next.Sub(q.End) > wait && (len(others) >= elsewhere || e.web < smallestOf) {
			return true
		}
	}
	return false
}

// most is broken if there are more requests than these, and lacks evidence if the crawler was still at it.
func (e *evidence) most(l testweb.Log, most int, what string) {
	switch {
	case len(l) > most:
		e.broken("it made "+plural(len(l), "request")+" "+what+", more than "+plural(most, "request"), l[most:]...)
	case len(l) == 0:
		e.missing("it made no request " + what)
	case !e.hasStopped(l):
		e.missing("the run ended before it was clear whether it stops " + what)
	}
}

// gaps is broken if a request began sooner after the end of the one before than it may.
func (e *evidence) gaps(l testweb.Log, least time.Duration) {
	for _, g := range l.ShortGaps(least) {
		e.broken("it made a request "+g.Length.Round(time.Millisecond).String()+" after the end of the one before, "+
			"at least "+least.String()+" are due", g.Before, g.After)
	}
}

// leastGap returns the shortest gap between two requests to a host of the station, in seconds; 0: there is none.
func (e *evidence) leastGap() (least float64) {
	for _, h := range e.hosts {
		for _, g := range e.log.Host(h.name).Gaps() {
			if least == 0 || g.Length.Seconds() < least {
				least = g.Length.Seconds()
			}
		}
	}
	return least
}

// once is broken if one of the pages was requested more often than once with the same method, however it is written. A
// crawler that was killed may not have known the result.
func (e *evidence) once(l testweb.Log) {
	seen := make(map[string]testweb.Request)
	for _, q := range l {
		file, _, _ := strings.Cut(q.Path, "#")
		key := q.Method + " " + q.Host + path.Clean(decoded(file))
		if before, again := seen[key]; again && !slices.ContainsFunc(e.starts[1:], func(at time.Time) bool {
			return before.Start.Before(at) && before.End.After(at.Add(-settled)) && !q.Start.Before(at)
		}) {
			e.broken("it requested "+q.Path+" more than once", before, q)
		}
		seen[key] = q
	}
}

// inFlight is broken if there were more requests at a time.
func (e *evidence) inFlight(l testweb.Log, most int) {
	if n := l.MaxInFlight(); n > most {
		e.broken("it had "+plural(n, "request")+" in flight at a time", l...)
	}
}
