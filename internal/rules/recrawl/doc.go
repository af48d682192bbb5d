// Package recrawl plans recrawls: it decides when a fetched page is fetched again. It is pure: it
// does no I/O, takes no lock and reads no clock. One goroutine owns a Plan; everything else is
// plain values.
//
// # From a visit to the next
//
// Each visit of a page is an observation: the page had changed since the visit before, or it had
// not, or its Last-Modified says when it did. The 8 bytes of a History hold the newest
// observations. They give an estimate of how often the page changes (estimate.go), drawn towards
// the usual rate of its host (site.go) while they are few.
//
// The estimate, the importance of the page and one global price decide how long to wait (index.go):
// the wait of the harmonic index, which weighs the cost of a copy that missed changes against the
// price of a request. The price makes the waits of all pages together match the budget. It is
// computed from a census of all pages by rate and importance (census.go); it is not controlled by a
// feedback loop.
//
// # Plain policies
//
// A page can also have a fixed interval, one of two adaptive rules of other crawlers, or none at
// all (policy.go). Their part of the budget is subtracted before the price of the other pages is
// computed.
package recrawl
