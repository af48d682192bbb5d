package frontier

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// longestRepeatedRun bounds the length of repeated runs of segments; the depth of the path bounds
// longer ones.
const longestRepeatedRun = 8

// TrapOptions configure the checks. A zero disables a check.
type TrapOptions struct {
	PathDepth        int  // most segments of a path
	RepeatedSegments int  // most times that a run of segments may be repeated in a row
	QueryParameters  int  // most parameters of a query
	Calendar         bool // refuse dates before 1970 and more than two years ahead
	Refresh          bool // refuse a refresh to the path of its page with another query
	// MazePages is the number of pages of a part of a host that make it a suspected maze: see internal/rules/maze.
	MazePages int
	// Expensive is what becomes of links to the expensive endpoints of forges, wikis and the like. Whoever
	// reads a page checks it, because it depends on the page with the link.
	Expensive expensive.Mode
}

// Check returns the trap that a URL belongs to. via is the page with the link; zero for a seed. Any
// goroutine may call it.
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

// CheckRefresh returns the trap that the target of a refresh of a page belongs to. A challenge refreshes
// to the same path with another query each time. Any goroutine may call it.
func (o *TrapOptions) CheckRefresh(u, page weburl.URL) storage.Trap {
	path, _, _ := strings.Cut(u.RequestURI(), "?")
	same, _, _ := strings.Cut(page.RequestURI(), "?")
	if o.Refresh && u != page && u.Origin() == page.Origin() && path == same {
		return storage.TrapRefresh
	}
	return storage.NoTrap
}

func countParameters(query string) int {
	n := 0
	for range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		n++
	}
	return n
}

// repeats reports whether a run of segments is repeated more than limit times in a row:
// /a/b/a/b/a/b/a/b. Empty segments count like others.
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

// grows reports whether a URL is that of its page with a tail appended that the page's own URL
// already ends in limit times.
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

// The range of years in plausible URLs. Many calendars start at firstYear.
const (
	firstYear  = 1970
	yearsAhead = 2
)

// strangeDate reports whether a URL has a day or month that no page is about, as the next-month
// links of a calendar eventually do. Numbers that look like years are common, so a date needs more:
//
//	2031-05, 2031_05_17, 2031.05     month and day of two digits
//	2031/05/17                       month and day of two digits
//	calendar/2031/5, events/203105   after a word that suggests a calendar
//	year=2031, date=203105           as the value of a parameter
func strangeDate(uri string, now time.Time) bool {
	last := now.Year() + yearsAhead
	calendar := calendarWord(uri)
	for i := 0; i < len(uri); {
		end := digitsEnd(uri, i)
		if end == i {
			i++
			continue
		}
		if isDate(uri, i, end, calendar <= i) {
			if year := number(uri[i : i+4]); year < firstYear || year > last {
				return true
			}
		}
		i = end
	}
	return false
}

// isDate reports whether the digits uri[start:end] begin a date. behind says that a word before
// them suggests a calendar.
func isDate(uri string, start, end int, behind bool) bool {
	if uri[start] == '0' || start > 0 && isLetter(uri[start-1]) {
		return false
	}
	expected := behind || inParameter(uri, start)
	switch end - start {
	case 4:
		month, day, slash := partsBehind(uri, end)
		switch {
		case month == "" || !validMonth(number(month)):
			return inParameter(uri, start)
		case expected:
			return true
		case slash:
			return len(month) == 2 && len(day) == 2 && validDay(number(day))
		}
		return len(month) == 2
	case 6:
		return expected && validMonth(number(uri[start+4:end]))
	case 8:
		return expected && validMonth(number(uri[start+4:start+6])) && validDay(number(uri[start+6:end]))
	}
	return false
}

// partsBehind reads up to two numbers of one or two digits, each after the same separator.
func partsBehind(uri string, at int) (month, day string, slash bool) {
	start := at
	next := func(at int) (string, int) {
		if at >= len(uri) || uri[at] != uri[start] || !strings.ContainsRune("-/._", rune(uri[at])) {
			return "", at
		}
		end := digitsEnd(uri, at+1)
		if n := end - at - 1; n < 1 || n > 2 {
			return "", at
		}
		return uri[at+1 : end], end
	}
	month, end := next(at)
	day, _ = next(end)
	return month, day, month != "" && uri[at] == '/'
}

// inParameter reports whether the digits are the value of a parameter whose name ends in year,
// month or date.
func inParameter(uri string, at int) bool {
	for _, name := range [...]string{"year=", "month=", "date="} {
		if strings.HasSuffix(uri[:at], name) {
			return true
		}
	}
	return false
}

// calendarWord is where the first word that suggests a calendar ends; math.MaxInt if there is none.
func calendarWord(uri string) int {
	end := math.MaxInt
	for _, word := range [...]string{"calendar", "kalender", "calendrier", "events", "agenda"} {
		if at := strings.Index(uri, word); at >= 0 {
			end = min(end, at+len(word))
		}
	}
	return end
}

func digitsEnd(s string, at int) int {
	for at < len(s) && isDigit(s[at]) {
		at++
	}
	return at
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func number(digits string) int {
	n := 0
	for i := range len(digits) {
		n = 10*n + int(digits[i]-'0')
	}
	return n
}

func validMonth(n int) bool { return n >= 1 && n <= 12 }

func validDay(n int) bool { return n >= 1 && n <= 31 }

// SessionNames returns the parameters that carry session ids on common platforms, in lower case. A
// name that ends in a star stands for all names with that prefix.
func SessionNames() []string {
	return []string{
		"jsessionid", "phpsessid", "aspsessionid*", "asp.net_sessionid", "sessionid", "session_id", "sid", "cfid",
		"cftoken", "zenid", "oscsid", "osccsid", "s_id",
	}
}

// Sessions finds session ids in URLs. It is immutable; any goroutine may use it.
type Sessions struct {
	names    map[string]struct{}
	prefixes []string
}

// NewSessions returns Sessions for parameters of the given names.
func NewSessions(names []string) *Sessions {
	s := &Sessions{names: make(map[string]struct{}, len(names))}
	for _, name := range names {
		if prefix, ok := strings.CutSuffix(strings.ToLower(name), "*"); ok {
			s.prefixes = append(s.prefixes, prefix)
		} else {
			s.names[strings.ToLower(name)] = struct{}{}
		}
	}
	return s
}

// Strip returns a request URI without its session ids, and whether it had any. It allocates nothing
// if it had none.
func (s *Sessions) Strip(uri string) (string, bool) {
	if len(s.names)+len(s.prefixes) == 0 || strings.IndexByte(uri, '=') < 0 {
		return uri, false
	}
	path, query, hasQuery := strings.Cut(uri, "?")
	stripped, inPath := s.stripPath(path)
	kept, inQuery := query, false
	if hasQuery {
		kept, inQuery = s.stripQuery(query)
	}
	switch {
	case !inPath && !inQuery:
		return uri, false
	case kept == "" && (inQuery || !hasQuery):
		return stripped, true
	}
	return stripped + "?" + kept, true
}

// stripPath drops path parameters: /page;jsessionid=1234. Its time is linear.
func (s *Sessions) stripPath(path string) (string, bool) {
	var kept strings.Builder
	from := 0 // what is before it is in kept or dropped
	for at := strings.IndexByte(path, ';'); 0 <= at && at < len(path); {
		end := at + 1
		for end < len(path) && path[end] != ';' && path[end] != '/' {
			end++
		}
		if path[at] == ';' && s.isSession(path[at+1:end]) {
			kept.WriteString(path[from:at])
			from = end
		}
		at = end
	}
	if from == 0 {
		return path, false
	}
	kept.WriteString(path[from:])
	return kept.String(), true
}

// stripQuery drops parameters of a query.
func (s *Sessions) stripQuery(query string) (string, bool) {
	found := false
	for part := range strings.SplitSeq(query, "&") {
		found = found || s.isSession(part)
	}
	if !found {
		return query, false
	}
	return strings.Join(slices.DeleteFunc(strings.Split(query, "&"), s.isSession), "&"), true
}

func (s *Sessions) isSession(parameter string) bool {
	name, value, ok := strings.Cut(parameter, "=")
	if !ok || value == "" {
		return false
	}
	name = strings.ToLower(name)
	if _, known := s.names[name]; known {
		return true
	}
	for _, prefix := range s.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
