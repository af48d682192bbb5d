package testweb

import (
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/rules/manners"
)

// Log is a record of requests in the order of Start. Its methods do not change it. Select the
// requests first, then measure: log.Host("news.amble.test").MaxInFlight().
type Log []Request

// Gap is the pause between a request and the next one.
type Gap struct {
	Before, After Request       // Before ended last of those that started earlier
	Length        time.Duration // negative: After started while Before was in flight
}

func (l Log) sort() {
	slices.SortStableFunc(l, func(a, b Request) int { return a.Start.Compare(b.Start) })
}

// Filter returns the requests for which keep is true.
func (l Log) Filter(keep func(Request) bool) Log {
	var part Log
	for _, q := range l {
		if keep(q) {
			part = append(part, q)
		}
	}
	return part
}

// Host returns the requests to one host name.
func (l Log) Host(host string) Log {
	return l.Filter(func(q Request) bool { return q.Host == host })
}

// Address returns the requests that reached one IP address.
func (l Log) Address(address string) Log {
	return l.Filter(func(q Request) bool { return q.Address == address })
}

// Path returns the requests for one path (with its query).
func (l Log) Path(path string) Log {
	return l.Filter(func(q Request) bool { return q.Path == path })
}

// Pages returns the requests for anything except robots.txt files.
func (l Log) Pages() Log {
	return l.Filter(func(q Request) bool { return !q.Robots() })
}

// Hosts returns the host names of the requests, sorted.
func (l Log) Hosts() []string { return l.distinct(func(q Request) string { return q.Host }) }

// Addresses returns the IP addresses that the requests reached, sorted.
func (l Log) Addresses() []string { return l.distinct(func(q Request) string { return q.Address }) }

func (l Log) distinct(key func(Request) string) []string {
	var keys []string
	for _, q := range l {
		keys = append(keys, key(q))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Gaps returns the gaps between the requests of the log, whatever their host: from the end of all
// requests that started before to the start of the next. There is one gap less than requests.
func (l Log) Gaps() []Gap { return l.gaps(0, func(manners.Verdict) bool { return true }) }

// ShortGaps returns the gaps that are shorter than least; a negative one allows all.
func (l Log) ShortGaps(least time.Duration) []Gap {
	if least < 0 {
		return nil
	}
	return l.gaps(max(least, 1), func(v manners.Verdict) bool { return v.Short })
}

// gaps returns those of the gaps that keep is true for, judged by a delay.
func (l Log) gaps(delay time.Duration, keep func(manners.Verdict) bool) (gaps []Gap) {
	last, before := 0, manners.Host[Instant]{}
	for i, q := range l {
		if v := before.Judge(q.Times(delay)); v.HasGap && keep(v) {
			gaps = append(gaps, Gap{Before: l[last], After: q, Length: v.Gap})
		}
		if before.Pass(q.Times(delay)); q.End.After(l[last].End) {
			last = i
		}
	}
	return gaps
}

// Instant is a moment by the clock of a web, which nobody can set.
type Instant struct{ time.Time }

// Sub returns how long after u the instant t is.
func (t Instant) Sub(u Instant) (d time.Duration, exact bool) { return t.Time.Sub(u.Time), true }

// Times returns the times of a request with a delay in force, for the judge of manners.
func (q Request) Times(delay time.Duration) manners.Request[Instant] {
	return manners.Request[Instant]{Start: Instant{q.Start}, End: Instant{q.End}, Delay: delay}
}

// MaxInFlight returns the largest number of requests that were in flight at once.
func (l Log) MaxInFlight() int {
	ends := make([]time.Time, len(l))
	for i, q := range l {
		ends[i] = q.End
	}
	slices.SortFunc(ends, time.Time.Compare)
	most, ended := 0, 0
	for i, q := range l {
		for ended < len(ends) && !ends[ended].After(q.Start) {
			ended++
		}
		most = max(most, i+1-ended)
	}
	return most
}

// BeforeRobots returns the page requests that started before a request for the /robots.txt of their
// host had ended: invariant 1, per origin of the web, whose hosts have one port. A robots.txt in a
// folder, as a redirect may lead to, counts neither as a page nor as the host's rules.
func (l Log) BeforeRobots() Log {
	first := make(map[string]time.Time) // host: end of its first robots request
	for _, q := range l {
		if end, known := first[q.Host]; q.Path == "/robots.txt" && (!known || q.End.Before(end)) {
			first[q.Host] = q.End
		}
	}
	return l.Filter(func(q Request) bool {
		end, known := first[q.Host]
		return !q.Robots() && (!known || q.Start.Before(end))
	})
}

// Robots reports whether the request is for a robots.txt file.
func (q Request) Robots() bool { return strings.HasSuffix(q.Path, "/robots.txt") }

// CountByPath counts the requests by host and path, joined: "news.amble.test/a".
func (l Log) CountByPath() map[string]int {
	count := make(map[string]int)
	for _, q := range l {
		count[q.Host+q.Path]++
	}
	return count
}

// Repeats is CountByPath of the pages that were fetched more than once.
func (l Log) Repeats() map[string]int {
	count := l.Pages().CountByPath()
	for path, n := range count {
		if n == 1 {
			delete(count, path)
		}
	}
	return count
}
