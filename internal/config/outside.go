package config

import (
	"regexp"
	"strings"
)

// variablePrefix begins the name of every setting in the environment.
const variablePrefix = "AMBLE_"

// orchestrated matches the variables that Kubernetes and Docker links set by themselves for a service called amble.
// They are no settings, and not a mistake of anybody's.
func orchestrated(name string) bool {
	return regexp.MustCompile(`^AMBLE(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`).MatchString(name)
}

// fromEnvironment reads the AMBLE_ variables of environ, which has the form of os.Environ. An empty variable counts as not
// given. A variable that is no setting is a problem: it is most likely misspelt, and would otherwise do nothing in silence.
func fromEnvironment(environ []string, words *vocabulary, r *report) []given {
	byVariable := map[string]setting{}
	for _, s := range words.settings {
		byVariable[s.variable()] = s
	}
	var found []given
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || text == "" {
			continue
		}
		source := Source{Name: clipped(name), order: orderEnvironment}
		s, known := byVariable[name]
		switch {
		case known:
			found = appendText(found, s, text, source, r)
		case !orchestrated(name):
			r.add(Problem{Source: source, Message: unknownVariable(name, words)})
		}
	}
	return found
}

func unknownVariable(name string, words *vocabulary) string {
	best, least := "", tolerance(name)+1
	for _, s := range words.settings {
		if d := distance(name, s.variable()); d < least {
			best, least = s.variable(), d
		}
	}
	if best == "" {
		return "is no setting; AMBLE_ and the name of a setting in capitals, such as AMBLE_POLITENESS_DELAY, or unset it"
	}
	return "is no setting; did you mean " + best + "?"
}

// fromFlags reads the values of --set flags, each of the form key=value. Of several for one key the last wins.
func fromFlags(sets []string, words *vocabulary, r *report) []given {
	source := Source{Name: "--set", order: orderFlag}
	var found []given
	for _, entry := range sets {
		key, text, ok := strings.Cut(entry, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			r.add(Problem{Source: source, Read: shown(entry), Message: "want key=value, such as --set politeness.delay=2s"})
			continue
		}
		s, known := words.byKey[key]
		if !known {
			r.add(Problem{Source: source, Key: clipped(key), Message: words.unknown(key)})
			continue
		}
		found = appendText(found, s, text, source, r)
	}
	return found
}

func appendText(found []given, s setting, text string, source Source, r *report) []given {
	value, bad := s.convertText(text)
	if bad != nil {
		r.add(Problem{Source: source, Key: s.key, Read: bad.read, Message: bad.want})
		return found
	}
	return append(found, given{setting: s, value: value, origin: origin{Source: source, text: text}})
}
