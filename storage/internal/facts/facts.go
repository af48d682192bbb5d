// Package facts are small facts of a URL.
package facts

import "time"

// Frequency is how often a page changes, according to a sitemap. The numbers are stored and
// therefore stable: 0 unknown, then the words of sitemaps.org from 1 always to 7 never. It has
// three bits.
type Frequency uint8

// String returns the word of sitemaps.org, or "" if the frequency is unknown.
func (f Frequency) String() string {
	return [...]string{"", "always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}[f&7]
}

// Every returns the time between two changes, or 0 if the frequency is unknown. Always counts as
// hourly, never as three years.
func (f Frequency) Every() time.Duration {
	const day = 24 * time.Hour
	return [...]time.Duration{0, time.Hour, time.Hour, day, 7 * day, 30 * day, 365 * day, 3 * 365 * day}[f&7]
}

// SeedID identifies a seed by its URL: the first bytes of its SHA-256. So all machines, and all runs, agree on it. The
// zero value is no seed.
type SeedID = [5]byte

// SeedRef is the seed that a URL was reached from. The zero value says nothing: then it is the seed whose scope the URL
// is in.
type SeedRef struct {
	ID      SeedID
	Outside uint8 // links since the scope of that seed was left
}
