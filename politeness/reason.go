package politeness

import "strconv"

// Reason names the sign that decides when a host may be asked. The numbers are stored: new ones are
// added at the end only.
type Reason uint8

// The signs.
const (
	ReasonNone        Reason = iota // nothing asks for a wait
	ReasonDelay                     // the configured delay
	ReasonCrawlDelay                // Crawl-delay of robots.txt
	ReasonAdaptive                  // the duration of the last request, times adaptive_factor
	ReasonErrors                    // the delay is doubled, because requests failed or the host recovers from a back-off
	ReasonRetryAfter                // the host sent Retry-After
	ReasonBackoff                   // the host refused or failed repeatedly and did not say for how long
	ReasonRestart                   // requests that were on their way when the crawler stopped may have reached the host
	ReasonRequestRate               // Request-rate of robots.txt
	ReasonVisitTime                 // Visit-time of robots.txt
	ReasonPause                     // the operator of the crawler, here or in the settings
	ReasonSetDelay                  // the delay that the operator has set for the host
	ReasonStart                     // hosts that could all start at once are spread over a delay
	ReasonLimit                     // the limit of its address, of a range of addresses or of its registrable domain
)

// Holds reports whether the reason is that of a [Hold], pauses apart.
func (r Reason) Holds() bool {
	switch r {
	case ReasonRetryAfter, ReasonBackoff, ReasonRestart, ReasonStart:
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
}

// String is the reason in one lower-case word, as reports and the API show it.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason(" + strconv.Itoa(int(r)) + ")"
}
