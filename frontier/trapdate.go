package frontier

import (
	"math"
	"strings"
	"time"
)

// The years that a page may be about; firstYear is that of the first date that
// many calendars offer.
const (
	firstYear  = 1970
	yearsAhead = 2
)

// strangeDate reports whether a URL names a day or month that no page is about,
// as the next-month links of a calendar do sooner or later. Numbers that look like a
// year are common, so it takes more to be a date:
//
//	2031-05, 2031_05_17, 2031.05     month and day of two digits
//	2031/05/17                       month and day of two digits
//	calendar/2031/5, events/203105   behind a word that speaks of a calendar
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
// them speaks of a calendar.
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

// partsBehind reads up to two numbers of one or two digits, each behind the same
// separator.
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

// inParameter reports whether the digits are the value of a parameter whose
// name ends in year, month or date.
func inParameter(uri string, at int) bool {
	before := uri[:at]
	return strings.HasSuffix(before, "year=") || strings.HasSuffix(before, "month=") || strings.HasSuffix(before, "date=")
}

// calendarWord is where the first word ends that speaks of a calendar; math.MaxInt if there is
// none.
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
func validDay(n int) bool   { return n >= 1 && n <= 31 }
