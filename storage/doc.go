// Package storage keeps what has to survive a crash: every accepted URL with its outcome, the state
// of its host, the robots records, and the marks of the files that are written next to the
// database. It is the only user of bbolt. Packages above it know nothing of files, buckets or
// transactions.
//
// FORMAT.md describes the layout. In short: a host owns a dense range of ordinals, one for each URL
// in the order of discovery. Texts are written once, sixteen to a row, and the queue of a host is a
// cursor over its ordinals. The newest URLs and outcomes of a host stay in the host's own row until
// there are enough of them for whole rows. So a commit writes each host that it changes once,
// however many of the host's URLs it carries.
//
// # Concurrency
//
// Commit and Close belong to one goroutine, the committer. Any goroutine may call Fingerprint,
// Counters and the reading methods at any time. Unless its comment says otherwise, a reading method
// holds a read transaction for at most a few milliseconds.
//
// The start ledger (Ledger) is a separate file next to the database. It belongs to one goroutine,
// the one that hands out requests.
package storage
