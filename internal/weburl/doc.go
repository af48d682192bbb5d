// Package weburl gives a web page its identity: one canonical text per http or https URL.
//
// [Parse] and [URL.Resolve] follow the WHATWG URL Standard (https://url.spec.whatwg.org), as browsers do, so that
// amble and a reader's browser agree on which page a link means. The canonical form is the standard's own serialisation
// with what never reaches a server left out: fragment, user name and password, default port and the final dot of a
// host. Nothing else is rewritten: no percent-decoding, no sorting of queries, no removal of parameters. Two texts
// that a server may tell apart stay apart. docs/URLS.md lists every rule with an example, and a test reads it.
//
// There are two ways through the package, and they must agree:
//
//   - The plain path ([Parse] and [URL.Resolve] try it first) recognises, in one pass over the bytes, a URL that is
//     canonical as it stands, or a reference that only has to be appended to a part of its base. It gives up at
//     the first byte that would need work. Most links of the web take it.
//   - The full path hands the text to github.com/nlnwa/whatwg-url, with this package's own host parser in place of
//     the library's, whose rules are those of 2023.
//
// The fuzz targets hold that whatever the plain path accepts, the full path turns into the same [URL].
//
// The package keeps no state, reads no clock and does no I/O. Everything in it may be used by any number of goroutines.
package weburl
