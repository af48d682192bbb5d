package httpfield

import (
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Settle leaves one line of each field of a response that can count only once, if a server sends
// several: the longest wait or age (Retry-After, Age), the earliest date (Expires), the last valid
// type (Content-Type, as in browsers), and none if they contradict each other (Location, ETag,
// Last-Modified, Date). It joins the lines of Cache-Control. Other fields stay unchanged.
func Settle(h http.Header, now time.Time) {
	for _, field := range [...]struct {
		name   string
		choose func(lines []string, now time.Time) string
	}{
		{"Age", longest}, {"Cache-Control", joined}, {"Content-Type", lastType}, {"Date", agreed}, {"Etag", agreed},
		{"Expires", soonest}, {"Last-Modified", agreed}, {"Location", agreed}, {"Retry-After", longest},
	} {
		lines := h[field.name]
		if len(lines) < 2 {
			continue
		}
		if one := field.choose(lines, now); one != "" {
			h[field.name] = []string{one}
		} else {
			delete(h, field.name)
		}
	}
}

// longest returns the line with the longest wait, or the first line if none is valid.
func longest(lines []string, now time.Time) string {
	return slices.MaxFunc(lines, func(a, b string) int {
		return compareWaits(a, b, now)
	})
}

// compareWaits orders lines by their wait. An invalid line means no wait.
func compareWaits(a, b string, now time.Time) int {
	wait := func(line string) time.Duration {
		if d, ok := RetryAfter(line, now); ok {
			return d
		}
		return -1
	}
	return int(min(max(wait(a)-wait(b), -1), 1))
}

// soonest returns the line with the earliest date. An invalid date is in the past (RFC 9111,
// section 5.3).
func soonest(lines []string, now time.Time) string {
	return slices.MinFunc(lines, func(a, b string) int {
		first, ok := Date(a, now)
		second, alsoOK := Date(b, now)
		switch {
		case !ok && alsoOK:
			return -1
		case ok && !alsoOK:
			return 1
		}
		return first.Compare(second)
	})
}

// joined returns one line with the items of all (RFC 9110, section 5.3).
func joined(lines []string, _ time.Time) string { return strings.Join(lines, ", ") }

// lastType returns the last line that is a media type (Fetch standard, "extract a MIME type").
func lastType(lines []string, _ time.Time) string {
	for _, line := range slices.Backward(lines) {
		if media, _, err := mime.ParseMediaType(line); err == nil && strings.Contains(media, "/") && media != "*/*" {
			return line
		}
	}
	return lines[0]
}

// agreed returns the value of all lines, or "" if they differ.
func agreed(lines []string, _ time.Time) string {
	for _, line := range lines {
		if line != lines[0] {
			return ""
		}
	}
	return lines[0]
}
