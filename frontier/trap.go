package frontier

import (
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// longestRepeatedRun bounds the runs of segments that are looked for; longer ones are
// left to the depth of the path.
const longestRepeatedRun = 8

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
func (o *TrapOptions) Check(u, via weburl.URL, now time.Time) storage.Trap {
	path, query, _ := strings.Cut(u.RequestURI(), "?")
	switch {
	case o.PathDepth > 0 && strings.Count(path, "/") > o.PathDepth:
		return storage.TrapDepth
	case o.QueryParameters > 0 && query != "" && countParameters(query) > o.QueryParameters:
		return storage.TrapParameters
	case o.RepeatedSegments > 0 && repeats(path, o.RepeatedSegments):
		return storage.TrapRepetition
	case o.RepeatedSegments > 0 && grows(u.RequestURI(), via, o.RepeatedSegments):
		return storage.TrapGrowth
	case o.Calendar && strangeDate(u.RequestURI(), now):
		return storage.TrapCalendar
	}
	return storage.NoTrap
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
