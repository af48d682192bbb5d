// Package warc reads and writes web archives: WARC 1.1 (ISO 28500:2017), and CDXJ, the index that
// replay tools read. Each record is a gzip member, as section 6 of annex D of the standard specifies,
// or a Zstandard frame, as "Zstandard Compression for WARC Files 1.0" of the International Internet
// Preservation Consortium (IIPC) specifies; see [Compression].
//
// A [Packer] writes records and a [Reader] reads them one after the other. Neither holds a block in
// memory. [Entry] is a line of the index, and [Key] returns the sort-friendly form of a URL (SURT),
// with which the line begins.
//
// The package does not depend on files, crawls or HTTP connections.
package warc
