// Package consent says what the content of a page may be used for, by all that its site and the page
// itself say: robots.txt, header fields, <meta> elements and the TDM file of the origin. It is pure,
// and its values may be used concurrently.
//
// A [Statement] is what one source says. [Combine] makes the effective preferences of a page from all
// of them, and a [Policy] says what the operator wants done about these.
//
// # Sources
//
//   - draft-ietf-aipref-vocab: categories, the form of a preference, and how several are combined
//   - draft-ietf-aipref-attach: Content-Usage in robots.txt and as a header field
//   - contentsignals.org: Content-Signal
//   - the TDM Reservation Protocol of the W3C community group (https://www.w3.org/community/reports/tdmrep/)
//   - Really Simple Licensing 1.0 (https://rslstandard.org/rsl): terms
//   - directives.tsv: directives such as noai, each with its source
package consent
