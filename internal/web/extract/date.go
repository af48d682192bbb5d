package extract

import (
	"strings"
	"time"
)

// The forms of dates in sitemaps (W3C Datetime), Atom (RFC 3339) and RSS (RFC 822), and of wrong
// ones that occur, by their begin: so only few of them are tried on a text. A date without a zone
// is in UTC.
var (
	yearMonthDay = [...]string{"2006-01-02", "2006-01", "2006"}
	yearTime     = [...]string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700",
		"2006-01-02T15:04:05", "2006-01-02T15:04"}
	yearAndTime = [...]string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05 -0700",
		"2006-01-02 15:04:05 MST"}
	dayMonthYear = [...]string{"_2 Jan 2006 15:04:05 -0700", "_2 Jan 2006 15:04:05 MST", "_2-Jan-2006 15:04:05 MST"}
	weekdayFirst = [...]string{
		"Mon, _2 Jan 2006 15:04:05 -0700", "Mon, _2 Jan 2006 15:04:05 MST", "Mon, _2 Jan 2006 15:04 -0700",
		"Mon, _2 Jan 2006 15:04 MST", "Mon, _2 Jan 06 15:04:05 -0700", "Mon, _2 Jan 06 15:04:05 MST",
		"Mon, _2 January 2006 15:04:05 -0700", "Monday, _2 January 2006 15:04:05 MST", "Mon Jan _2 15:04:05 2006",
		"Monday, _2-Jan-06 15:04:05 MST",
	}
)

// layoutsOf returns the forms that a text may have, by its begin and its length.
func layoutsOf(text string) []string {
	const digits = "0123456789"
	switch number := len(text) - len(strings.TrimLeft(text, digits)); {
	case number == 4 && len(text) <= len("2006-01-02"):
		return yearMonthDay[:]
	case number == 4 && text[len("2006-01-02")] == 'T':
		return yearTime[:]
	case number == 4:
		return yearAndTime[:]
	case number == 1 || number == 2:
		return dayMonthYear[:]
	case number == 0 && isWeekday(text[:min(len(text), 3)]):
		return weekdayFirst[:]
	}
	return nil
}

// parseDate reads a date; zero if it is none.
func parseDate(text string) time.Time {
	if len(text) > 64 {
		return time.Time{}
	}
	text = strings.Join(strings.Fields(text), " ")
	for _, layout := range layoutsOf(text) {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 && at.Year() < 10_000 {
			return at.UTC()
		}
	}
	return time.Time{}
}
