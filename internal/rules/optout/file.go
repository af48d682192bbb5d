package optout

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// maxLine bounds a line of a file, in bytes.
const maxLine = 4096

// ReadFile reads a list that an operator keeps: an entry a line, as in
//
//	domain example.org                    # mail of 2026-11-20
//	prefix https://www.example.net/diary/ until=2027-01-01
//	range  192.0.2.0/24
//	www.example.com
//
// A line without a scope is a host. What follows a # after a blank is the reason. A line that
// cannot be read is an error with its number, because a wish that is not understood must not be
// passed over. at is when the entries were recorded: the time of the file.
func ReadFile(r io.Reader, at time.Time) ([]Entry, error) {
	var entries []Entry
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, maxLine), maxLine)
	number := 0
	for s.Scan() {
		number++
		e, ok, err := parseLine(s.Text(), at)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if ok {
			entries = append(entries, e)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	return entries, nil
}

func parseLine(line string, at time.Time) (e Entry, ok bool, err error) {
	fields, reason := line, ""
	if i := strings.IndexByte(line, '#'); i == 0 || i > 0 && (line[i-1] == ' ' || line[i-1] == '\t') {
		fields, reason = line[:i], strings.TrimSpace(line[i+1:])
	}
	words := strings.Fields(fields)
	if len(words) == 0 {
		return Entry{}, false, nil
	}
	e = Entry{Scope: ScopeHost, Reason: reason, At: at}
	switch Scope(words[0]) {
	case ScopeHost, ScopeDomain, ScopeRange, ScopePrefix:
		e.Scope, words = Scope(words[0]), words[1:]
	}
	for _, word := range words {
		if text, found := strings.CutPrefix(word, "until="); found {
			if e.Until, err = ParseUntil(text); err != nil {
				return Entry{}, false, err
			}
		} else if e.Value == "" {
			e.Value = word
		} else {
			return Entry{}, false,
				fmt.Errorf("%w: %q after %q: a line is a scope, a value, until=DATE, and # with a reason",
					ErrEntry, word, e.Value)
		}
	}
	if !e.Until.IsZero() && !e.Until.After(at) { // it ended before the file was last changed
		e.At = e.Until.Add(-time.Second)
	}
	e, err = New(e)
	return e, err == nil, err
}

// ParseUntil reads the end of an entry: the last day, in UTC, or an instant of RFC
// 3339.
func ParseUntil(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{},
			fmt.Errorf("%w: until %q: should look like 2027-01-31 or 2027-01-31T12:00:00Z", ErrEntry, text)
	}
	return t.UTC(), nil
}
