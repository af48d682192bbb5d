package consent

import (
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Source is where a statement stands. Of the TDM Reservation Protocol, a later source supersedes an
// earlier one. The numbers are stored.
type Source uint8

const (
	SourceRobots  Source = iota // robots.txt
	SourceTDMFile               // /.well-known/tdmrep.json
	SourceHeader                // a header field of the response
	SourceMeta                  // a <meta> element
)

// String returns the name used in output.
func (s Source) String() string {
	return [...]string{"robots.txt", "tdmrep.json", "header", "meta"}[min(s, SourceMeta)]
}

// Statement is what one source says.
type Statement struct {
	Preferences Preferences
	Source      Source
	Terms       bool   // it stands in terms of Really Simple Licensing that the source names or has
	Line        int    // of robots.txt, or the number of a rule of the TDM file; 0: none
	Text        string // as written, with its name: "Content-Usage: train-ai=n"
}

// String returns the statement with its source, such as "robots.txt line 3: Content-Usage: search=n".
func (s Statement) String() string { return s.From() + ": " + s.Text }

// From returns where the statement stands, such as "robots.txt line 3".
func (s Statement) From() string {
	switch {
	case s.Line > 0 && s.Source == SourceTDMFile:
		return fmt.Sprintf("%s rule %d", s.Source, s.Line)
	case s.Line > 0:
		return fmt.Sprintf("%s line %d", s.Source, s.Line)
	case s.Terms:
		return s.Source.String() + " license"
	}
	return s.Source.String()
}

// maxValue bounds the octets that are read of one value. A longer one states nothing.
const maxValue = 4096

// ParseUsage returns the preferences of a Content-Usage: a dictionary of RFC 9651, here with its
// lines. What cannot be parsed states nothing, and so does each value that is neither y nor n
// (draft-ietf-aipref-vocab, section 6.4).
func ParseUsage(lines ...string) Preferences {
	var p Preferences
	n := 0
	for _, line := range lines {
		n += len(line)
	}
	if n > maxValue {
		return p
	}
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return p
	}
	for _, c := range []Category{TrainAI, Search} { // what the vocabulary defines
		member, _ := dictionary.Get(categoryNames[c])
		if item, ok := member.(httpsfv.Item); ok {
			switch item.Value {
			case httpsfv.Token("y"):
				p[c] = Allowed
			case httpsfv.Token("n"):
				p[c] = Disallowed
			}
		}
	}
	return p
}

// signals are the names of contentsignals.org.
var signals = [...]struct {
	name     string
	category Category
}{{"search", Search}, {"ai-input", AIInput}, {"ai-train", TrainAI}}

// ParseSignal returns the preferences of a Content-Signal, such as "search=yes, ai-train=no". The
// stricter counts of two values for one name.
func ParseSignal(value string) Preferences {
	var p Preferences
	if len(value) > maxValue {
		return p
	}
	for pair := range strings.SplitSeq(value, ",") {
		name, value, _ := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		for _, s := range signals {
			if strings.EqualFold(name, s.name) {
				p[s.category] = max(p[s.category], yesNo(value))
			}
		}
	}
	return p
}

func yesNo(value string) Preference {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "yes":
		return Allowed
	case "no":
		return Disallowed
	}
	return Unknown
}

// ParseReservation returns the preference of a tdm-reservation: "1" reserves the rights, "0" does
// not.
func ParseReservation(value string) Preferences {
	var p Preferences
	switch strings.TrimSpace(value) {
	case "1":
		p[Mining] = Disallowed
	case "0":
		p[Mining] = Allowed
	}
	return p
}
