//go:build !core

// Package erase removes all that a crawl keeps of a host, or of a domain with all names below it: from
// the database, the start ledger, the request log, the crash files and, if wanted, the output.
// docs/ERASURE.md says what goes and what stays.
//
// The packages that own the files do the work, each file for itself: they write a new file, make it
// durable and put it in the place of the old one, so that kill -9 leaves the old one or the new one.
// This package does the steps in an order in which nothing half-erased is crawled:
//
//  1. It takes the lock of the database, which it keeps to the end.
//  2. It writes the journal, crawl.ErasureFile: what is erased. While that exists, no crawl opens the
//     data directory.
//  3. It erases from the output, the request log, the crash files, the ledger, and last from the
//     database. What each file loses is in the journal before the file is replaced.
//  4. It adds what went from the output to the tombstones, and removes the journal.
//
// After a crash [Resume] does the steps again. Those that were done find nothing any more; their counts
// are in the journal.
package erase
