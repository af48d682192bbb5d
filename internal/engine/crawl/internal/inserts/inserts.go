// Package inserts is what became of URLs that somebody gives to a crawl.
package inserts

// Result is what became of an Addition.
type Result uint8

// The results.
const (
	None     Result = iota // no commit has come to it
	Added                  // it is new, and on disk
	Known                  // it was there before
	Outside                // it is not in scope, or deeper than crawl.max_depth
	Refused                // the host has too many origins, or the URL leads into a trap
	Again                  // it was there before, and is put back into its queue
	OptedOut               // an opt-out covers it
)

// String names it, as Counts does.
func (r Result) String() string {
	return [...]string{"", "added", "known", "outside", "refused", "again", "opted_out"}[r]
}

// Counts is what became of additions. Each of them is counted once.
type Counts struct {
	Added   int `json:"added"`           // new, and on disk
	Known   int `json:"known"`           // there before
	Outside int `json:"outside"`         // not in scope, or deeper than crawl.max_depth
	Refused int `json:"refused"`         // the host has too many origins, or they lead into traps
	Again   int `json:"again,omitempty"` // there before, and put back into their queues

	OptedOut int `json:"opted_out,omitempty"` // an opt-out covers them
}

// Plus is the sum.
func (a Counts) Plus(b Counts) Counts {
	return Counts{a.Added + b.Added, a.Known + b.Known, a.Outside + b.Outside, a.Refused + b.Refused, a.Again + b.Again,
		a.OptedOut + b.OptedOut}
}

// Count counts one result.
func (a *Counts) Count(r Result) {
	switch r {
	case Added:
		a.Added++
	case Known:
		a.Known++
	case Outside:
		a.Outside++
	case Refused:
		a.Refused++
	case Again:
		a.Again++
	case OptedOut:
		a.OptedOut++
	}
}
