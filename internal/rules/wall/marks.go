package wall

import (
	_ "embed"
	"fmt"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed marks.txt
var marksText string

// Mark is what the marks of known walls say about a response.
type Mark struct {
	Wall uint8 // the number of the wall in marks.txt; 0: unknown make
	Tier Tier
	// Excuse reports whether the document says why it stands under many addresses: it is not there,
	// or wants patience. Gate reports whether it wants a login, consent or an age, which is as good a reason
	// where it always did. Neither counts for TierHeader and TierPage.
	Excuse, Gate bool
}

// Tier is how much a mark proves, by where it stands.
type Tier uint8

// The tiers, from the weakest to the strongest.
const (
	TierNone   Tier = iota
	TierStub        // the body; ordinary pages of a protected site have it as well
	TierPhrase      // the body; people write it too
	TierPage        // the body of interstitials, and of pages that quote them
	TierHeader      // a field of the response: conclusive
	tierExcuse
	tierGate
)

var tierNames = map[string]Tier{
	"stub": TierStub, "phrase": TierPhrase, "page": TierPage, "header": TierHeader, "excuse": tierExcuse,
	"gate": tierGate,
}

// Marks finds the marks of known walls. It is immutable.
type Marks struct {
	names  map[uint8]string
	fields []field // by name, those of the file's first lines first
	body   *matcher
}

// field is the mark of a header field.
type field struct {
	name  string // canonical
	wall  uint8
	rule  byte   // '=', '~' or '?'
	value string // in lower case
}

// mark is a line of the list.
type mark struct {
	wall         uint8
	name, text   string
	tier         Tier
	source, date string
}

// NewMarks returns the marks of marks.txt.
func NewMarks() *Marks {
	m, err := parseMarks(marksText)
	if err != nil {
		panic("wall: marks.txt: " + err.Error()) // the tests read it
	}
	return m
}

func parseMarks(text string) (*Marks, error) {
	m := &Marks{names: make(map[uint8]string)}
	var patterns []pattern
	for number, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		k, err := parseMark(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number+1, err)
		}
		if known, ok := m.names[k.wall]; ok && known != k.name {
			return nil, fmt.Errorf("line %d: wall %d is %s, and not %s", number+1, k.wall, known, k.name)
		}
		m.names[k.wall] = k.name
		if k.tier != TierHeader {
			patterns = append(patterns, pattern{text: k.text, mark: Mark{Wall: k.wall, Tier: k.tier}})
			continue
		}
		f, err := parseField(k)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number+1, err)
		}
		m.fields = append(m.fields, f)
	}
	slices.SortStableFunc(m.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	m.body = newMatcher(patterns)
	return m, nil
}

func parseMark(line string) (k mark, err error) {
	columns := strings.Split(line, " | ")
	if len(columns) != 6 {
		return k, fmt.Errorf("%d columns instead of 6", len(columns))
	}
	number, err := strconv.ParseUint(columns[0], 10, 8)
	if err != nil {
		return k, fmt.Errorf("number of the wall: %w", err)
	}
	k = mark{
		wall: uint8(number), name: columns[1], tier: tierNames[columns[2]], text: columns[3],
		source: columns[4], date: columns[5],
	}
	if _, err := time.Parse(time.DateOnly, k.date); err != nil {
		return k, err
	}
	isShort := k.tier != TierHeader && len(k.text) < shortestMark
	if k.tier == TierNone || k.source == "" || isShort || len(k.text) > longestMark {
		return k, fmt.Errorf("tier %q, source %q and a mark of %d bytes", columns[2], k.source, len(k.text))
	}
	return k, nil
}

// The lengths that a mark of a body may have. A short one would be found by chance, and have the search look at more
// of the body.
const (
	shortestMark = 12
	longestMark  = 128
)

func parseField(k mark) (f field, err error) {
	words := strings.SplitN(k.text, " ", 3)
	f.name, f.wall = textproto.CanonicalMIMEHeaderKey(words[0]), k.wall
	switch {
	case len(words) == 2 && words[1] == "?":
		f.rule = '?'
	case len(words) == 3 && (words[1] == "=" || words[1] == "~"):
		f.rule, f.value = words[1][0], strings.ToLower(words[2])
	default:
		return f, fmt.Errorf("header %q is not one of: name = value, name ~ text, name ?", k.text)
	}
	return f, nil
}

// matches reports whether a line of the field is the mark.
func (f *field) matches(line string) bool {
	switch f.rule {
	case '?':
		return true
	case '=':
		return strings.EqualFold(strings.TrimSpace(line), f.value)
	}
	return strings.Contains(strings.ToLower(line), f.value)
}

// Name returns the name of a wall, "" if its make is unknown.
func (m *Marks) Name(wall uint8) string {
	if wall == 0 {
		return ""
	}
	return m.names[wall]
}

// bodyBytes is how much of a body is searched.
const bodyBytes = 64 << 10

// Bounds of the lines of a field that are read.
const (
	mostLines   = 8
	longestLine = 4 << 10
)

// Find returns the strongest mark of a response. The names in header are canonical, as those of
// http.Header. Find searches the first 64 KiB of body; its time is linear in them. Any goroutine
// may call it.
func (m *Marks) Find(header map[string][]string, body []byte) Mark {
	var name string
	var lines []string
	for i := range m.fields {
		f := &m.fields[i]
		if f.name != name {
			name, lines = f.name, header[f.name]
			lines = lines[:min(len(lines), mostLines)]
		}
		for _, line := range lines {
			if f.matches(line[:min(len(line), longestLine)]) {
				return Mark{Wall: f.wall, Tier: TierHeader}
			}
		}
	}
	return m.body.find(body[:min(len(body), bodyBytes)])
}
