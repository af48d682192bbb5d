package politeness

import "strconv"

// Reason names the sign that decides when a request to a host may start. The numbers are stored:
// new reasons are added at the end only.
type Reason uint8

// The signs.
const (
	ReasonNone        Reason = iota // no wait is required
	ReasonDelay                     // the configured delay
	ReasonCrawlDelay                // Crawl-delay of robots.txt
	ReasonAdaptive                  // the duration of the last request, times adaptive_factor
	ReasonErrors                    // the delay is doubled, because the host is failing or recovering
	ReasonRetryAfter                // the host sent Retry-After
	ReasonBackoff                   // backoff: the host refused or failed repeatedly and named no time
	ReasonRestart                   // restart hold: requests in flight at a crash may have reached the host
	ReasonRequestRate               // Request-rate of robots.txt
	ReasonVisitTime                 // Visit-time of robots.txt
	ReasonPause                     // the operator has paused the host, by a command or in the settings
	ReasonSetDelay                  // the operator has set a delay for the host
	ReasonStart                     // the starts of many hosts are spread over a delay
	ReasonLimit                     // the limit of its address, of a range of addresses or of its registrable domain
	ReasonWall                      // backoff: the host has put up a wall
	ReasonRateLimit                 // RateLimit: no request of the quota is left until its reset
	ReasonRatePolicy                // RateLimit-Policy: a quota of requests for a time
	ReasonHours                     // the hours that the operator allows
)

// Holds reports whether the reason is that of a [Hold] other than a pause.
func (r Reason) Holds() bool {
	switch r {
	case ReasonRetryAfter, ReasonRateLimit, ReasonBackoff, ReasonRestart, ReasonStart, ReasonWall:
		return true
	}
	return false
}

var reasonNames = [...]string{
	ReasonNone:       "none",
	ReasonDelay:      "delay",
	ReasonCrawlDelay: "crawl-delay",
	ReasonAdaptive:   "adaptive",
	ReasonErrors:     "errors",
	ReasonRetryAfter: "retry-after",
	ReasonBackoff:    "back-off",
	ReasonRestart:    "restart",

	ReasonRequestRate: "request-rate",
	ReasonVisitTime:   "visit-time",
	ReasonPause:       "pause",
	ReasonSetDelay:    "set-delay",
	ReasonStart:       "start",
	ReasonLimit:       "limit",
	ReasonWall:        "wall",
	ReasonRateLimit:   "rate-limit",
	ReasonRatePolicy:  "rate-policy",
	ReasonHours:       "hours",
}

// String returns the reason in one lower-case word, as reports and the API show it.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason(" + strconv.Itoa(int(r)) + ")"
}
