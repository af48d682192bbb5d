// Package frontier decides which URL is fetched next. It is pure: it does no I/O, starts no
// goroutine, takes no lock and reads no clock. One goroutine owns a Frontier and calls it with the
// time as an argument. The example of the package is a whole crawler.
//
// # Hosts and their states
//
// Politeness belongs to a host: its name without scheme and port. A host is in exactly one state;
// see the type state. After everything that happens to a host, scheduler.schedule moves it to the
// state that it belongs in. Only waiters of a shared limit have an order of their own; see the type
// limit.
//
// A dormant host takes about 150 bytes. Its URLs, robots rules and limiter are in memory only while
// it is active.
//
// Hosts with pages to recrawl are also in a heap of recrawls, whatever else they wait for; see the
// type share.
//
// Hosts that wait, and dormant hosts, are in one of three lanes, by how long their requests keep
// workers; see the type lane.
//
// # Leases
//
// Next returns leases: one request to one host at one address, or the match of a URL against a
// robots.txt that takes too long for the owner of the Frontier. NextName returns leases for lookups
// of names. Each lease ends in exactly one call of a Complete method. The request of a page may end
// before its lease does: EndRequest takes what politeness has to know, so that the host may have its
// next request, and CompletePage the outcome. TakeBatch returns what the store needs to know of the
// results, and Committed says that a batch is on disk. Between the two no URL is forgotten, because a
// host becomes dormant only when everything about it is committed.
//
// # Robots
//
// A queue belongs to an origin (scheme, host, port), as does a robots.txt. Each URL is matched
// against the rules of its origin just before it is fetched. If there is no robots decision in
// force, the host's next lease is for the robots.txt. An origin that may not be fetched from is
// held as a whole; its URLs stay in the queue.
package frontier
