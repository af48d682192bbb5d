package consent

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed directives.tsv
var directivesTable string

// Directives are the directives of X-Robots-Tag and <meta name=robots> that state a preference.
type Directives map[string]Preferences

// KnownDirectives returns the directives of directives.tsv, which names the source of each.
func KnownDirectives() Directives {
	d, err := parseDirectives(directivesTable)
	if err != nil {
		panic(err) // the table is part of the program, and a test reads it
	}
	return d
}

func parseDirectives(table string) (Directives, error) {
	d := Directives{}
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 5 || d[fields[0]] != (Preferences{}) {
			return nil,
				fmt.Errorf("directives: %q has %d fields, or a directive that is there twice", line, len(fields))
		}
		c, err := ParseCategory(fields[1])
		if err != nil {
			return nil, fmt.Errorf("directives: %q: %w", line, err)
		}
		var p Preferences
		switch fields[2] {
		case "y":
			p[c] = Allowed
		case "n":
			p[c] = Disallowed
		default:
			return nil, fmt.Errorf("directives: %q: preference %q is neither y nor n", line, fields[2])
		}
		d[fields[0]] = p
	}
	return d, nil
}
