// Package politeness computes when the next request to a host, or to an IP address, may start.
//
// # Use
//
// Keep one [Host] for each host name. Start a request no sooner than [Host.Ready], and report its
// end:
//
//	options := politeness.DefaultOptions() // one second between requests
//	host := politeness.NewHost(&options, politeness.State{}, time.Now())
//
//	time.Sleep(time.Until(host.Ready(time.Now())))
//	start := time.Now()
//	// ... one request ...
//	end := time.Now()
//	host.Ended(end, politeness.Result{Signal: politeness.SignalOK, Duration: end.Sub(start)})
//
// A Host knows the pace of one host: the configured delay, the Crawl-delay of its robots.txt, the
// duration of its last request, Retry-After, and the backoff after errors. [Host.Ready] computes
// one instant from them, and [Host.Explain] says which of them decided it:
//
//	delay in force = max(configured delay, Crawl-delay, adaptive delay), doubled while the host is failing
//	ready          = max(next token of the limiter, end of the last request + delay in force, hold)
//	hold           = the latest of Retry-After, backoff and restart hold
//
// The limiter is a golang.org/x/time/rate limiter with a burst of 1. It is charged at the end of a
// request, because a slow response would otherwise use up the gap that follows it. Its rate is a
// float, so the second term of the maximum restores every nanosecond that rounding could lose.
//
// robots.txt may restrict the pace by the hour of the day ([Demands]). A wait that ends in a
// forbidden hour is extended to the end of that hour, by the wall clock at the time of the call.
//
// A [Limit] bounds the requests to all hosts that share an address, a range of addresses or a
// domain.
//
// # Time
//
// The package reads no clock, starts no goroutine and takes no lock. Instants are arguments and
// keep their monotonic reading, so a wall clock that is set while the process runs neither shortens
// nor lengthens a wait. A [State] outlives the process, so it holds wall times: each wait is stored
// as its end and its length, and the rest of a wait is never longer than its length.
//
// # Concurrency
//
// A [Host] and a [Limit] have one owner at a time: their methods may not be called concurrently.
// Different hosts may share their [Options], which nobody may change while a Host uses them.
// Everything else is a value.
//
// # Memory
//
// A Host takes 240 bytes with its limiter. A Limit takes 56 bytes, and 80 more for its limiter
// where it has a delay (BenchmarkMemory). A host that waits costs no goroutine and no timer. A host
// that has no wait left can be dropped and made again from its State.
//
// # Sources
//
//   - Retry-After: RFC 9110, HTTP Semantics, section 10.2.3; dates as in section 5.6.7.
//   - Crawl-delay, Request-rate and Visit-time are extensions of robots.txt. RFC 9309 permits them
//     in section 2.2.4; neither it nor the standard of 1994 defines a pace.
//
// docs/POLITENESS.md says what is promised to a site, and what no crawler can know.
package politeness
