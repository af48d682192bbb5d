// Package crawl is the engine: it owns every goroutine, every channel and every
// reading of the clock that a crawl has.
//
// # Goroutines
//
// Run starts them all and returns when the last has ended:
//
//	dispatcher  one; it is Run itself. Owns the frontier and the start ledger,
//	            hands leases to workers that are idle and results to the committer.
//	committer   one; the only writer of the store and of the output. Folds all
//	            that gathered during a commit into the next.
//	loader      one; reads queue heads and robots records, and compiles rules, so
//	            that the dispatcher never waits for the disk.
//	sweeper     one; changes what becomes of many URLs of a host, page by page: puts
//	            denied ones to robots rules that changed, drops a queue.
//	workers     Options.Workers; one request at a time each: fetch, extract, encode.
//
// # A crash at any moment
//
// The dispatcher writes a line to the start ledger before a lease reaches a
// worker. A commit holds the outcome, the discoveries, the host's politeness,
// the length of the output and the place in the ledger up to which all
// requests are settled; the output is on disk before the commit that counts
// it. So after a crash the store and the output agree, only requests without
// a commit are made again, and their hosts are given the delay they are owed.
package crawl
