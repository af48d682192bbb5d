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
//   - The full path (parse.go, authority.go, host.go, target.go) takes any text apart, in time linear in its length.
//
// The fuzz targets hold that whatever the plain path accepts, the full path turns into the same [URL], and that another
// implementation of the standard agrees.
//
// [Rules] go further, for those who ask for it.
//
// The package keeps no state, reads no clock and does no I/O. Everything in it may be used by any number of goroutines.
package weburl
