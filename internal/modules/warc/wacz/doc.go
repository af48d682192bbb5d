//go:build !core

// Package wacz packs WARC files into one file in the format Web Archive Collection Zipped, version 1.1.1: the records,
// an index over all of them, the list of pages with their text, and a manifest with the digest of each part.
//
// A file is read once, whatever its size: its records go to the package as they are, or are compressed again with gzip
// if they were with zstd. Lines of the index and of the lists of pages wait in files. The package has its name when it
// is complete and on disk; a call after one that did not end goes on behind what is on disk.
package wacz
