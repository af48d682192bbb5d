package politeness

import "strconv"

// Reason names the sign that decides when a host may be asked. The numbers are stored: new ones are
// added at the end only.
type Reason uint8

// The signs, in the order in which they are asked.
const (
	ReasonNone       Reason = iota // nothing asks for a wait
	ReasonDelay                    // the configured delay
	ReasonCrawlDelay               // Crawl-delay or Request-rate of robots.txt
	ReasonAdaptive                 // the duration of the last request, times adaptive_factor
	ReasonErrors                   // the delay is doubled, because requests failed or the host recovers from a back-off
	ReasonRetryAfter               // the host sent Retry-After
	ReasonBackoff                  // the host refused or failed repeatedly and did not say for how long
	ReasonRestart                  // requests that were on their way when the crawler stopped may have reached the host
)

var reasonNames = [...]string{
	ReasonNone:       "none",
	ReasonDelay:      "delay",
	ReasonCrawlDelay: "crawl-delay",
	ReasonAdaptive:   "adaptive",
	ReasonErrors:     "errors",
	ReasonRetryAfter: "retry-after",
	ReasonBackoff:    "back-off",
	ReasonRestart:    "restart",
}

// String is the reason in one lower-case word, as reports and the API show it.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason(" + strconv.Itoa(int(r)) + ")"
}
