// Package wall tells from the responses of a host whether it has put up a wall: a run of refusals
// or challenge pages in place of its pages. It is pure: it does no I/O, takes no lock, reads no
// clock, and one goroutine at a time owns a [State].
//
// # The parts
//
// [Marks.Find] looks for the marks of known walls in the fields and the beginning of a response
// (marks.txt is the list). [Shape] sums up a document without what changes with each request.
// Both are for workers. [State.Observe] takes an [Answer] of a host, in the order of completions,
// and returns a [Verdict].
//
// # What counts
//
// Each refusal adds evidence for a wall: the logarithm of how much more likely a refusal is behind a
// wall than it was at this host before, up to a bound of its kind. Each page takes away more than
// two refusals add. A wall begins when the sum reaches [threshold]: after 7 responses that name a
// challenge, 6 waits for a rate limit, 8 other refusals, and later at a host that refused much
// before. A sequential test of this form is Page's CUSUM (Biometrika 41, 1954).
//
// Refusals are not independent: a section that needs a login refuses all of its pages. So a section
// that has never answered counts three times, however often it refuses. A section that answered
// before counts in full. At a host that has never answered, a single section needs 10 refusals.
//
// Status 200 proves little. Without a mark, one short document under several URLs counts only if the
// host had other documents before, and if the document has none of the words of pages that are not
// there, of logins, of consent or of maintenance. With a mark in the body it counts from the first
// page on, if it has the same shape each time.
package wall
