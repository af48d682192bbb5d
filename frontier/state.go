package frontier

// state is what a host is waiting for. A host is in exactly one state; schedule decides which.
type state uint8

const (
	// empty: it has no work. A commit that brings a URL ends this.
	empty state = iota
	// dormant: it has work on disk and nothing in memory. It is in the dormant heap of its lane, by
	// the instant at which it may be fetched from.
	dormant
	// woken: it is dormant, and a robots job makes it active whether there is room or not.
	woken
	// loading: it becomes active; its queues are being read. Loaded or LoadFailed ends this.
	loading
	// resolving: it needs an address. It is in a list of lookups, or its lookup is leased.
	resolving
	// waiting: it has work. It is in the ready heap of its lane, by the instant at which it may be
	// fetched from.
	waiting
	// limited: it may be fetched from, but is among the waiters of a shared limit.
	limited
	// leased: as many requests are in flight as it may have, or its session is over and ends with
	// the commit of what it did.
	leased
	// waitingForRobots: all its work waits for a robots.txt, or for a match against one.
	waitingForRobots
	// overBudget: it has work on disk, but its budget of pages is spent, or that of its domain.
	overBudget
	// recrawlOnly: it is dormant and has only pages to recrawl.
	recrawlOnly
	// waitingToRecrawl: it is active and has only pages to recrawl.
	waitingToRecrawl

	states = iota
)

// String returns the name of the state in the API, which keeps names of earlier versions; see "Names
// that stay" in docs/GLOSSARY.md.
func (s state) String() string {
	return [states]string{
		"idle", "dormant", "called", "loading", "resolving", "waiting", "crowded", "leased", "parked", "shelved", "resting",
		"renewing",
	}[s]
}
