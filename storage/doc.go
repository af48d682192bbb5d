// Package storage keeps what has to survive a crash: every URL that was ever
// accepted, what became of it, the state of its host, the robots policies, and
// the marks of the files written beside the database. It is the only user of
// bbolt, and nothing above it knows of files, buckets or transactions.
//
// The layout is described in FORMAT.md. In short: a host owns a dense range of
// ordinals, one for each URL in the order of discovery. Texts are written once,
// sixteen to a row, and the queue of a host is a cursor over its ordinals.
// The newest URLs and outcomes of a host wait in the host's own row until
// there are enough of them for whole rows, so that a commit writes each touched
// host once however many of its URLs it carries.
//
// # Who may call what
//
// Commit and Close belong to one goroutine, the committer. Fingerprint,
// Counters and every reading method may be called by any goroutine at any time;
// each reading method holds a read transaction for at most a few milliseconds.
//
// The start ledger (Ledger) is a file of its own beside the database. It belongs
// to one goroutine, the one that hands out requests.
package storage
