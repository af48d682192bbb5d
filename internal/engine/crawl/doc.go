// Package crawl is the engine: it owns every goroutine, every channel and every reading of the
// clock that a crawl has.
//
// # Roles
//
// Each role is a type that holds what it may touch and its own ends of channels, and nothing else:
//
//	dispatcher  owns the frontier, and a part for each thing that it keeps track of: leases, loads,
//	            sweeps, the next commit, the status. It gives leases to idle workers, gathers results
//	            for the committer, and serves the mailbox. Run's goroutine.
//	worker      of package work; one request at a time for each of Options.Workers goroutines: fetch,
//	            extract, encode. Lookups of names use it too, each in a goroutine of its own.
//	committer   one goroutine; the only one that writes the store and the output.
//	loader      one goroutine, of package load; reads queue heads and robots records, and compiles
//	            rules.
//	sweeper     one goroutine, of package sweep; makes the steps of sweeps, which walk over many URLs
//	            and decide which of them change.
//
// Page leases may also go to fetchers outside of the process (Engine.Lease, Engine.Report). The
// dispatcher keeps them; the goroutines of callers do the work of a worker.
//
// What roles share is immutable (Options, the logger) or safe for concurrent use (the tally, the
// space on the disk, the store, whose methods each role sees as far as it uses them). Engine opens
// and closes what they work on, and newRoles wires them. Its other methods reach the dispatcher by
// the mailbox.
//
// # A crash at any moment
//
// The dispatcher writes a line to the start ledger before a lease reaches a worker. A commit holds
// the outcomes, the discoveries, the hosts' politeness, the length of the output and the offset in
// the ledger before which all requests are settled; the output is on disk before the commit that
// counts it. So after a crash the store and the output agree, only requests without a commit are
// made again, and their hosts have a restart hold.
package crawl
