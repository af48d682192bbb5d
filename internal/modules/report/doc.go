//go:build !core

// Package report says what a crawl came to, whether it runs or not: what became of its seeds, the statuses, types and
// bytes of its responses, its broken links with the pages that have them, its redirects, what was left out and why,
// and what was counted of the URLs that a crawl does not keep.
//
// [Make] reads the database in short transactions while the crawl goes on, so its counts are of different moments.
// [Scan] reads the output for what the database has not: all pages with a link, and where redirects lead. The reports
// of the parts of a crawl add up to that of the whole ([Summary.Add]).
package report
