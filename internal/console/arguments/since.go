//go:build !core

package arguments

import (
	"fmt"
	"time"
)

// ParseSince reads the value of a flag --since: a duration before now, a day, or a time.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since %q is not a duration such as 24h, a date such as 2026-11-20, or a time "+
		"such as 2026-11-20T13:00:00Z", text)
}
