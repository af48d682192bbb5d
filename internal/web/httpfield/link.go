package httpfield

import (
	"slices"
	"strings"
)

// Links returns the targets of the links with a relation, of the lines of a Link field (RFC 8288,
// section 3), as they stand there: at most so many, the first ones. It ignores what it cannot read. Its
// work is linear in the length of the lines.
func Links(lines []string, relation string, most int) (targets []string) {
	for _, line := range lines {
		for rest := line; len(targets) < most; {
			_, after, found := strings.Cut(rest, "<")
			target, parameters, closed := strings.Cut(after, ">")
			if !found || !closed {
				break
			}
			var relations []string
			if relations, rest = linkRelations(parameters); slices.ContainsFunc(relations, func(r string) bool {
				return strings.EqualFold(r, relation)
			}) {
				targets = append(targets, target)
			}
		}
	}
	return targets
}

// linkRelations reads the parameters of one link, and returns its relations and what follows it. The
// first parameter rel counts.
func linkRelations(parameters string) (relations []string, rest string) {
	for known := false; ; {
		end := endOfParameter(parameters)
		name, value, _ := strings.Cut(parameters[:end], "=")
		if !known && strings.EqualFold(strings.Trim(name, blanks), "rel") {
			known, relations = true, strings.Fields(strings.Trim(strings.Trim(value, blanks), `"`))
		}
		if end == len(parameters) || parameters[end] == ',' {
			return relations, parameters[end:]
		}
		parameters = parameters[end+1:]
	}
}

// endOfParameter returns where a parameter ends: at a semicolon or a comma that is in no quotes.
func endOfParameter(text string) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case (c == ';' || c == ',') && !quoted:
			return i
		}
	}
	return len(text)
}
