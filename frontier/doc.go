// Package frontier decides which URL is asked for next. It is pure: it does no
// I/O, starts no goroutine, takes no lock and reads no clock. One goroutine
// owns a Frontier and calls it with the time as an argument.
//
// # Hosts and where they are
//
// Politeness belongs to a host: its name without scheme and port. A host that
// has work is in exactly one place. After everything that happened to it, place
// (in place.go) moves it to where it belongs; only the line of an address
// (address.go) has its own order:
//
//	idle       nothing to do; it comes back when a commit brings a URL
//	dormant    has work on disk, nothing of it in memory; in the dormant heap,
//	           keyed by the instant at which it may be asked
//	called     dormant, and another host waits for it: it becomes active
//	           whether there is room or not
//	loading    its queues are being read; comes back with Loaded
//	resolving  its address is not known; in line for a lookup, or leased as one
//	waiting    in the ready heap, keyed by the instant at which it may be asked
//	crowded    its turn has come but its address is busy; in the address's line
//	leased     as many requests in flight as it may have, or its share of them
//	           while others wait for room
//	parked     has work, but all of it waits for another host's answer
//	shelved    has work on disk, but its budget of pages is spent, or its domain's
//	resting    dormant, with nothing to do but renewals
//	renewing   waits, with nothing to do but renewals
//
// A host that is dormant costs a few words. Its queue heads, robots rules and
// limiter are in memory only while it is active, which is all the places from
// loading on.
//
// Pages that are to be asked for again are the host's renewals. Hosts that have some are, beside the place
// that says what else they do, in one of two more heaps while they are dormant or wait: share.go.
//
// Hosts that wait are in one of three lanes, by how long their requests keep workers: lanes.go. Dormant ones are too, so that hosts
// which lead nowhere do not take all the room.
//
// # Leases
//
// Next hands out leases: one request to one host at one address, or the match
// of a URL against a robots.txt that takes too long for the owner of the Frontier
// (match.go). NextName hands out lookups of names. Each lease ends in exactly one call of a
// Complete method. What the store must know of it gathers in a batch that
// TakeBatch hands over; Committed says that the batch is on disk. Nothing here
// forgets a URL between the two: a host goes back to dormant only when all
// that was said about it is committed.
//
// # Robots
//
// A queue is that of one origin (scheme, host, port) of a host, because robots.txt
// belongs to the origin. Each URL is put to the origin's rules at the moment
// it would leave. Where no verdict is in force, the host's next lease is the
// robots.txt itself. An origin that may not be asked at all is held as a whole;
// its URLs stay where they are.
package frontier
