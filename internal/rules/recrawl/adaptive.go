package recrawl

import "time"

// Both rules adjust an interval after each visit. Their constants are the defaults of the crawlers
// that they come from.

// nutch is AdaptiveFetchSchedule of Nutch 1.x with the values of its nutch-default.xml: longer by
// 0.4 after a visit without a change, shorter by 0.2 after one with a change. If the page says when
// it changed, the next visit tries to keep step with that. It returns the interval to keep and the
// wait for the next visit.
func nutch(interval time.Duration, v *Visit, r *Rule) (keep, next time.Duration) {
	const longer, shorter, step = 0.4, 0.2, 0.3
	switch v.Change {
	case Same:
		interval += time.Duration(longer * float64(interval))
	case Changed:
		interval -= time.Duration(shorter * float64(interval))
	}
	var late time.Duration
	if age := v.At.Sub(v.Modified); !v.Modified.IsZero() && age > 0 {
		interval = max(interval, age)
		late = time.Duration(step * float64(age))
	}
	interval = min(max(interval, r.Min), r.Max)
	return interval, min(max(interval-late, r.Min), r.Max)
}

// stormcrawler is AdaptiveScheduler of StormCrawler: longer by half after a visit without a change,
// half way to the shortest interval after one with a change.
func stormcrawler(interval time.Duration, v *Visit, r *Rule) time.Duration {
	switch v.Change {
	case Same:
		interval += interval / 2
	case Changed:
		interval = (interval + r.Min) / 2
	}
	return min(max(interval, r.Min), r.Max)
}
