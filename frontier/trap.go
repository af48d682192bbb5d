package frontier

import (
	"fmt"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
)

// Trap names what is wrong with a URL that leads into a trap: a part of a site
// that goes on for ever. The numbers are stored and therefore stable.
type Trap uint8

// The traps that a URL alone shows, and those that the store finds because it
// knows the other URLs of the host.
const (
	NoTrap             Trap = 0
	TrapDepth          Trap = 1 // too many path segments
	TrapRepetition     Trap = 2 // segments that repeat
	TrapParameters     Trap = 3 // too many query parameters
	TrapCalendar       Trap = 4 // a date that no page is about
	TrapGrowth         Trap = 5 // what the page before appended, appended again
	TrapQueries        Trap = 6 // one path with very many different queries
	TrapSession        Trap = 7 // differs from a known URL by a session id only
	TrapSameContent    Trap = 8 // found on one of many pages with the same content
	TrapHostURLs       Trap = 9 // the host has as many URLs as it may have
	numTraps                = 10
	longestRepeatedRun      = 8 // segments; longer runs are left to TrapDepth
)

var trapNames = [numTraps]string{
	"none", "path depth", "repeated segments", "query parameters", "calendar", "growing URL",
	"queries of a path", "session id", "same content", "URLs of the host",
}

// String names the trap as reports do.
func (t Trap) String() string {
	if int(t) < len(trapNames) {
		return trapNames[t]
	}
	return fmt.Sprintf("trap(%d)", uint8(t))
}

// TrapOptions tune the checks. A zero switches a check off.
type TrapOptions struct {
	PathDepth        int  // segments of a path
	RepeatedSegments int  // times a run of segments may follow itself
	QueryParameters  int  // parameters of a query
	Calendar         bool // refuse dates before 1970 and more than two years ahead
}

// DefaultTrapOptions are bounds that pages meant for readers do not meet.
func DefaultTrapOptions() TrapOptions {
	return TrapOptions{PathDepth: 25, RepeatedSegments: 3, QueryParameters: 20, Calendar: true}
}

// Check looks at a URL that was found on the page via, which is the zero URL for
// a seed. It says which trap the URL belongs to. Any goroutine may call it.
func (o *TrapOptions) Check(u, via weburl.URL, now time.Time) Trap {
	path, query, _ := strings.Cut(u.RequestURI(), "?")
	switch {
	case o.PathDepth > 0 && strings.Count(path, "/") > o.PathDepth:
		return TrapDepth
	case o.QueryParameters > 0 && query != "" && countParameters(query) > o.QueryParameters:
		return TrapParameters
	case o.RepeatedSegments > 0 && repeats(path, o.RepeatedSegments):
		return TrapRepetition
	case o.RepeatedSegments > 0 && grows(u.RequestURI(), via, o.RepeatedSegments):
		return TrapGrowth
	case o.Calendar && strangeDate(u.RequestURI(), now):
		return TrapCalendar
	}
	return NoTrap
}

func countParameters(query string) int {
	n := 0
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		if part != "" {
			n++
		}
	}
	return n
}

// repeats reports whether a run of segments follows itself more than limit
// times: /a/b/a/b/a/b/a/b. Empty segments count like others.
func repeats(path string, limit int) bool {
	if strings.Count(path, "/") <= limit {
		return false
	}
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for run := 1; run <= longestRepeatedRun && run*(limit+1) <= len(segments); run++ {
		equal := 0 // segments in a row that equal the one a run before
		for i := run; i < len(segments); i++ {
			if segments[i] != segments[i-run] {
				equal = 0
				continue
			}
			if equal++; equal >= run*limit {
				return true
			}
		}
	}
	return false
}

// grows reports whether a URL is that of its page with a tail that the page's own URL ends
// in limit times already.
func grows(uri string, via weburl.URL, limit int) bool {
	if via.IsZero() {
		return false
	}
	before := via.RequestURI()
	tail, ok := strings.CutPrefix(uri, before)
	if !ok || len(tail) < 2 {
		return false
	}
	for range limit {
		if before, ok = strings.CutSuffix(before, tail); !ok {
			return false
		}
	}
	return true
}
