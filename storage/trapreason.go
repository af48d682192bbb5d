package storage

import "fmt"

// Trap names what is wrong with a URL that leads into a trap: a part of a site
// that goes on for ever. The numbers are stored and therefore stable.
type Trap uint8

// The traps that a URL alone shows, and those that the store finds because it
// knows the other URLs of the host.
const (
	NoTrap          Trap = 0
	TrapDepth       Trap = 1 // too many path segments
	TrapRepetition  Trap = 2 // segments that repeat
	TrapParameters  Trap = 3 // too many query parameters
	TrapCalendar    Trap = 4 // a date that no page is about
	TrapGrowth      Trap = 5 // what the page before appended, appended again
	TrapQueries     Trap = 6 // one path with very many different queries
	TrapSession     Trap = 7 // differs from a known URL by a session id only
	TrapSameContent Trap = 8 // found on one of many pages with the same content
	TrapHostURLs    Trap = 9 // the host has as many URLs as it may have
	numTraps             = 10
)

var trapNames = [numTraps]string{
	"none", "path depth", "repeated segments", "query parameters", "calendar", "growing URL",
	"queries of a path", "session id", "same content", "URLs of the host",
}

// String names the trap as reports do.
func (t Trap) String() string {
	if int(t) < len(trapNames) {
		return trapNames[t]
	}
	return fmt.Sprintf("trap(%d)", uint8(t))
}
