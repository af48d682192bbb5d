// Package revisit decides when a page that was fetched is asked for again. It is
// pure: it does no I/O, takes no lock and reads no clock. One goroutine owns a
// Plan; everything else here is plain values.
//
// # From a visit to the next
//
// Each visit of a page is an observation: it had changed since the visit before, or
// it had not, or its Last-Modified says when it did. The newest observations are kept
// in the 8 bytes of a History. From them comes an estimate of how often the page
// changes (estimate.go), drawn to what is usual at its host (site.go) while they are few.
//
// The estimate, the importance of the page and one global price say how long to
// wait (index.go): the wait of the harmonic index, which weighs what a copy that
// missed changes costs against the price of a request. The price is what makes
// the waits of all pages together come to the budget. It is not steered but
// computed, from a census of all pages by rate and importance (census.go).
//
// # Plain policies
//
// A page can also be given a fixed interval, one of two adaptive rules that people know from
// other crawlers, or none at all (policy.go). What these take of the budget is taken off before
// the price of the others is computed.
package revisit
