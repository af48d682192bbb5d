// Package warc is the format of web archives: WARC 1.1 (ISO 28500:2017) with one gzip member a record, as
// section 6 of its annex D wants it, and CDXJ, the index that replay tools read.
//
// A [Packer] writes records and a [Reader] reads them one after the other, both without holding a block in memory.
// [Entry] is a line of the index, [Key] the sort-friendly form of a URL (SURT) that it begins with.
//
// The package knows nothing of files, crawls or HTTP connections.
package warc
