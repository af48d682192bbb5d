package politeness

import (
	"strconv"
	"time"
)

// Result describes a request that ended.
type Result struct {
	Signal Signal
	// Duration is the time from the start of the request to its end; 0: not known, so that no delay
	// follows from it.
	Duration time.Duration
	// RetryAfter is the time for which the host demands to be left alone, from the end of the
	// request, as [ParseRetryAfter] returned it. It is honoured with every signal and at any
	// length. Zero: no demand.
	RetryAfter time.Duration
	// Header is the value of the Retry-After header, for reports.
	Header string
	// Wall is the kind of the wall, in a word, of SignalWalled.
	Wall string
	// Parked, with SignalWalled, makes the backoff a day: enough probes of the wall have failed.
	Parked bool
	// RateLimit is what the response says about the quota of its server, as [ParseRateLimit] returned
	// it. Its Hold is honoured as RetryAfter is; the longer one counts. Its Policy counts until the
	// next response.
	RateLimit RateLimit
	// Cause is why the request failed, in the caller's numbers; 0: unknown. It is kept while the
	// host is failing.
	Cause uint16
	// Jitter is a random number from 0 to 1. It makes a backoff up to a quarter longer, so that
	// hosts that failed together do not return together.
	Jitter float64
}

// Signal is the kind of response to a request, as far as the pace is concerned.
type Signal uint8

// The signals.
const (
	SignalOK          Signal = iota // any response that is no complaint about the pace: 2xx, 3xx, most of 4xx
	SignalThrottled                 // 429 or 503
	SignalServerError               // any other 5xx
	SignalUnreachable               // no response: a failure of name, connection, TLS or time
	SignalAborted                   // the crawler gave up for reasons of its own, unrelated to the host
	SignalWalled                    // the host has put up a wall, and this was no page
	SignalRefused                   // a response that says nothing of the pace, such as a refusal that may be of a wall
)

var signalNames = [...]string{
	SignalOK:          "ok",
	SignalThrottled:   "throttled",
	SignalServerError: "server-error",
	SignalUnreachable: "unreachable",
	SignalAborted:     "aborted",
	SignalWalled:      "walled",
	SignalRefused:     "refused",
}

// String returns the signal in one lower-case word.
func (s Signal) String() string {
	if int(s) < len(signalNames) {
		return signalNames[s]
	}
	return "signal(" + strconv.Itoa(int(s)) + ")"
}
