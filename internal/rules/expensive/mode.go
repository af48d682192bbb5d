package expensive

import "slices"

// Mode is what becomes of links to expensive endpoints.
type Mode uint8

// The modes.
const (
	Crawl Mode = iota // they are links like others
	Skip              // they are refused
	Last              // they are fetched when nothing else of the host is left
)

var modeNames = [...]string{"crawl", "skip", "last"}

// String returns the mode as the setting has it.
func (m Mode) String() string { return modeNames[min(int(m), len(modeNames)-1)] }

// ParseMode is the inverse of String.
func ParseMode(text string) (m Mode, ok bool) {
	i := slices.Index(modeNames[:], text)
	return Mode(max(i, 0)), i >= 0
}
