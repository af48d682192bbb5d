// Package weburl gives a web page its identity: one canonical text per http or https URL.
//
// [Parse] and [URL.Resolve] follow the WHATWG URL Standard (https://url.spec.whatwg.org), as
// browsers do, so that amble and a reader's browser agree on the page that a link means. The
// canonical form is the standard's own serialisation without the parts that never reach a server:
// fragment, user name and password, default port and the final dot of a host. Nothing else is
// rewritten: no percent-decoding, no sorting of queries, no removal of parameters. Two texts that a
// server may tell apart stay apart. docs/URLS.md lists every rule with an example, and a test reads
// it.
//
// The package has two ways to parse, which must agree:
//
//   - The plain path ([Parse] and [URL.Resolve] try it first) recognises, in one pass over the
//     bytes, a URL that is canonical already, or a reference that only has to be appended to a part
//     of its base. It gives up at the first byte that needs work. Most links of the web take it.
//   - The full path (parse.go, authority.go, host.go, target.go) parses any text, in time linear in
//     its length.
//
// The fuzz targets check that the full path turns whatever the plain path accepts into the same
// [URL], and that another implementation of the standard agrees.
//
// [Rules] change URLs further, if the configuration sets them.
//
// The package keeps no state, reads no clock and does no I/O. Any number of goroutines may use
// everything in it.
package weburl
