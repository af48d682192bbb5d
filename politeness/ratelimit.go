package politeness

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/amble-crawler/amble/internal/web/httpfield"
)

// RateLimit is what a response says about the rate at which its server accepts requests.
type RateLimit struct {
	// Hold is the time until the quota is reset, from the end of the request, if none of it is left.
	Hold time.Duration
	// Header is the field that Hold comes from, for reports; cut at MaxHeader bytes.
	Header string
	// Policy is the slowest of the policies; zero: the response has none.
	Policy Policy
}

// Policy is a quota of requests for a window of time.
type Policy struct {
	Quota  uint32 // requests; 0 with a Window counts as 1
	Window time.Duration
}

// Delay returns the time between two requests that spreads the quota over the window, rounded up; 0
// for the zero Policy.
func (p Policy) Delay() time.Duration {
	d, q := max(p.Window, 0), time.Duration(max(p.Quota, 1))
	return d/q + min(d%q, 1)
}

// String returns the policy as a structured field has it, or nothing for the zero Policy.
func (p Policy) String() string {
	if p.Window <= 0 {
		return ""
	}
	return fmt.Sprintf("q=%d;w=%d", p.Quota, p.Window/time.Second)
}

// Bounds of fields from the network.
const (
	maxRateLimitBytes = 1 << 10 // of a field; longer ones are not read
	firstUnixTime     = 1e9     // the least RateLimit-Reset that is a time, in seconds since 1970
	firstUnixMillis   = 1e12    // the least one in milliseconds
)

// ParseRateLimit reads the fields RateLimit and RateLimit-Policy
// (draft-ietf-httpapi-ratelimit-headers-10), and what earlier drafts and servers have in their place:
// RateLimit as a dictionary, and RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, also with
// X- before them. Of several remaining quotas and policies, the most restrictive one counts. What
// cannot be read is left out. The keys of header are in the canonical form of net/http; now is the
// end of the response.
//
// A reset is a number of seconds, as all drafts have it. Some servers send the time of the reset in
// seconds or milliseconds since 1970 in a RateLimit-Reset. The two cannot be confused: 10⁹ seconds
// from now are 31 years, and 10⁹ seconds after 1970 are the year 2001.
func ParseRateLimit(header map[string][]string, now time.Time) (r RateLimit) {
	lines := func(name string) []string {
		values, n := header[name], 0
		for _, v := range values {
			n += len(v)
		}
		if n > maxRateLimitBytes {
			return nil
		}
		return values
	}
	policies := make(map[string]Policy)
	for _, name := range [...]string{"Ratelimit-Policy", "Ratelimit-Limit", "X-Ratelimit-Limit"} {
		r.readPolicies(lines(name), policies)
	}
	r.readQuotas(lines("Ratelimit"), policies)
	r.readReset(lines("Ratelimit-Remaining"), lines("Ratelimit-Reset"), now)
	r.readReset(lines("X-Ratelimit-Remaining"), lines("X-Ratelimit-Reset"), now)
	return r
}

// readPolicies reads a list of policies: "name";q=100;w=60, or 100;w=60 before draft 08.
func (r *RateLimit) readPolicies(lines []string, byName map[string]Policy) {
	if len(lines) == 0 { // as most responses
		return
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return
	}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok || !ofRequests(item) {
			continue
		}
		quota, isNumber := item.Value.(int64)
		if !isNumber {
			if quota, ok = parameter(item, "q"); !ok {
				continue
			}
		}
		window, ok := parameter(item, "w")
		if !ok || window == 0 || quota < 0 {
			continue
		}
		p := Policy{Quota: uint32(min(quota, math.MaxUint32)), Window: seconds(window)}
		if name := itemName(item); name != "" {
			byName[name] = p
		}
		if p.Delay() > r.Policy.Delay() {
			r.Policy = p
		}
	}
}

// ofRequests reports whether the quota of a policy counts requests, which is the default.
func ofRequests(policy httpsfv.Item) bool {
	unit, there := policy.Params.Get("qu")
	return !there || unit == "requests" || unit == httpsfv.Token("requests")
}

// readQuotas reads the quotas that are left: "name";r=0;t=30, or remaining=0, reset=30 in draft 07.
// Without a time, the window of the policy with this name counts.
func (r *RateLimit) readQuotas(lines []string, policies map[string]Policy) {
	if len(lines) == 0 {
		return
	}
	if list, err := httpsfv.UnmarshalList(lines); err == nil {
		for _, member := range list {
			item, ok := member.(httpsfv.Item)
			if !ok {
				continue
			}
			if left, ok := parameter(item, "r"); !ok || left > 0 {
				continue
			}
			reset := policies[itemName(item)].Window
			if t, ok := parameter(item, "t"); ok {
				reset = seconds(t)
			}
			r.hold(reset, lines)
		}
		return
	}
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return
	}
	left, ok := number(dictionary, "remaining")
	reset, there := number(dictionary, "reset")
	if ok && there && left == 0 {
		r.hold(seconds(reset), lines)
	}
}

// readReset reads the two fields of drafts 00 to 06.
func (r *RateLimit) readReset(remaining, resets []string, now time.Time) {
	left, known := time.Duration(math.MaxInt64), false
	for _, line := range remaining {
		if n, ok := httpfield.Seconds(line); ok {
			left, known = min(left, n), true
		}
	}
	if !known || left > 0 {
		return
	}
	for _, line := range resets {
		if d, ok := httpfield.Seconds(line); ok {
			r.hold(sinceNow(d, line, now), []string{line})
		}
	}
}

// sinceNow returns d, or the time until the reset if its value is a time.
func sinceNow(d time.Duration, value string, now time.Time) time.Duration {
	whole, _, _ := strings.Cut(strings.TrimSpace(value), ".")
	switch n, err := strconv.ParseInt(whole, 10, 64); {
	case err != nil || n < firstUnixTime:
		return d
	case n >= firstUnixMillis:
		return time.UnixMilli(n).Sub(now)
	default:
		return time.Unix(n+1, 0).Sub(now) // a fraction is rounded up
	}
}

// hold keeps the longest wait, and the value that it comes from.
func (r *RateLimit) hold(d time.Duration, lines []string) {
	if d > r.Hold {
		r.Hold, r.Header = d, clipped(strings.Join(lines, ", "))
	}
}

// itemName returns the name of a policy, which is a string; some servers send a token.
func itemName(item httpsfv.Item) string {
	switch name := item.Value.(type) {
	case string:
		return name
	case httpsfv.Token:
		return string(name)
	}
	return ""
}

// parameter returns a parameter that is a number, 0 or more.
func parameter(item httpsfv.Item, name string) (int64, bool) {
	value, _ := item.Params.Get(name)
	n, ok := value.(int64)
	return n, ok && n >= 0
}

// number returns a member that is a number, 0 or more.
func number(dictionary *httpsfv.Dictionary, name string) (int64, bool) {
	member, _ := dictionary.Get(name)
	item, _ := member.(httpsfv.Item)
	n, ok := item.Value.(int64)
	return n, ok && n >= 0
}

// seconds converts a number of seconds, 0 or more; what does not fit is the longest duration.
func seconds(n int64) time.Duration {
	if n >= math.MaxInt64/int64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Second
}
