// Package warc reads and writes web archives: WARC 1.1 (ISO 28500:2017) with one gzip member for
// each record, as section 6 of its annex D specifies, and CDXJ, the index that replay tools read.
//
// A [Packer] writes records and a [Reader] reads them one after the other. Neither holds a block in
// memory. [Entry] is a line of the index, and [Key] returns the sort-friendly form of a URL (SURT),
// with which the line begins.
//
// The package does not depend on files, crawls or HTTP connections.
package warc
