package robots

import (
	"fmt"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestNames: every value that is reported has its own name.
func TestNames(t *testing.T) {
	kinds := map[string][]fmt.Stringer{}
	for c := ClassNone; c < classEnd; c++ {
		kinds["class"] = append(kinds["class"], c)
	}
	for f := FailureNone; f < failureEnd; f++ {
		kinds["failure"] = append(kinds["failure"], f)
	}
	for r := ReasonNone; r <= ReasonForbidden; r++ {
		kinds["reason"] = append(kinds["reason"], r)
	}
	for k := DecisionFetch; k <= DecisionHold; k++ {
		kinds["decision"] = append(kinds["decision"], k)
	}
	for k := range warningsCount {
		kinds["warning"] = append(kinds["warning"], k)
	}
	for name, values := range kinds {
		seen := map[string]bool{}
		for _, v := range values {
			assert.True(t, v.String() != "" && !seen[v.String()], "%s: %q names two", name, v)
			seen[v.String()] = true
		}
	}
	assert.Equal(t, warningsCount.String(), "warning", "a kind that does not exist has a name")
}

func TestCrawlDelay(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"Crawl-delay: 0":            0,
		"Crawl-delay: 0.001":        time.Millisecond,
		"Crawl-delay: 0.0000000001": time.Nanosecond, // rounded up: never faster than demanded
		"Crawl-delay: 604800":       7 * 24 * time.Hour,
		"Crawl-delay: 1d":           24 * time.Hour,
		"Crawl-delay: 1e20":         MaxDelay,
		"Crawl-delay: 9223372037":   MaxDelay,
		"Request-rate: 1/4":         4 * time.Second,
		"Request-rate: 4/1":         250 * time.Millisecond,
		"Crawl-delay: 5e-1":         500 * time.Millisecond,
		"Crawl-delay: 5e":           5 * time.Second,
		"Crawl-delay: -1":           -1,
		"Sitemap: /5":               -1,
	} {
		d, ok := Compile([]byte("User-agent: *\n"+line+"\n"), "amble").CrawlDelay()
		assert.True(t, ok == (want >= 0) && (!ok || d == want), "%s: %v %v, want %v", line, d, ok, want)
	}
	assert.AtMost(t, begin.Add(MaxDelay).Year(), 2200, "a time plus MaxDelay does not fit into nanoseconds since 1970")
}

// TestForbiddenStays: a forbidden origin that becomes unreachable does not become allowed by
// waiting.
func TestForbiddenStays(t *testing.T) {
	o := DefaultOptions()
	o.ForbiddenDenies = true
	r, _ := o.Next(Record{}, response(403, "", Header{}), begin)
	for _, age := range []time.Duration{hour, 40 * day} {
		out := response(500, "", Header{})
		out.HostAnswers = true
		r, _ = o.Next(r, out, begin.Add(age))
		assert.Equal(t, o.Decide(r, 0, begin.Add(age)).Kind, DecisionHold, "after", age)
	}
}
