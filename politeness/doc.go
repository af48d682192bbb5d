// Package politeness says when a host, and an IP address, may be asked next.
//
// A [Host] holds everything that is known about the pace of one host: the configured delay, the
// Crawl-delay of its robots.txt, how long its last answer took, what Retry-After asked for, and how
// far the crawler has backed off after errors. From these it computes one instant, [Host.Ready],
// and can say which of the signs decided it, [Host.Explain].
//
//	delay in force = max(configured delay, Crawl-delay, adaptive delay), doubled while the host is in trouble
//	ready          = max(next token of the limiter, end of the last request + delay in force, hold)
//	hold           = the latest of Retry-After, back-off and what is owed after a restart
//
// The limiter is a golang.org/x/time/rate limiter of burst 1. It is charged when a request ends: a
// slow answer must not eat the gap that follows it. Its rate is a float, so the sum of the second
// term guards every nanosecond that rounding could lose.
//
// What robots.txt asks for may depend on the hour: [Asked]. Then the wait is moved behind the hours in which the host may not
// be asked, by the wall clock as it stands.
//
// A [Limit] bounds the requests to all hosts that share something: an address, a range of addresses, a domain.
//
// # Time
//
// Nothing here reads a clock, starts a goroutine or takes a lock. Instants are arguments, and keep
// the monotonic reading they were given, so that a wall clock that is set while the process runs
// neither shortens nor lengthens a wait. A [State] holds wall times, because it outlives the
// process; each wait in it is (until, length), and what remains of it is never more than its length.
//
// # Memory
//
// A Host takes 208 bytes with its limiter, a Limit 56 and 80 more for its limiter where it has a delay (BenchmarkMemory), so a
// host that waits costs no more than its place in a heap. A host to which nothing is owed can be dropped and made again from its State.
package politeness
