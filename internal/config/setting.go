package config

import (
	"reflect"
	"strings"
)

// setting is one leaf of Config: its name and its type.
type setting struct {
	key   string       // section.name, or name alone at the top
	typ   reflect.Type // of the field
	tag   reflect.StructTag
	index []int // of the field in Config
}

// settings returns every setting in the order of the struct, which is the order of the file.
func settings() []setting {
	var list []setting
	collect(reflect.TypeFor[Config](), "", nil, &list)
	return list
}

func collect(t reflect.Type, prefix string, index []int, list *[]setting) {
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() {
			continue
		}
		key := prefix + field.Tag.Get("mapstructure")
		at := append(append([]int{}, index...), i)
		if field.Type.Kind() == reflect.Struct {
			collect(field.Type, key+".", at, list)
			continue
		}
		*list = append(*list, setting{key: key, typ: field.Type, tag: field.Tag, index: at})
	}
}

// section returns the part of the key before the last dot, or "".
func (s setting) section() string { return sectionOf(s.key) }

func sectionOf(key string) string { return key[:max(strings.LastIndexByte(key, '.'), 0)] }

// put sets the value of the setting in a map of its sections.
func (s setting) put(top map[string]any, value any) {
	section := top
	if s.section() != "" {
		for name := range strings.SplitSeq(s.section(), ".") {
			if section[name] == nil {
				section[name] = map[string]any{}
			}
			section = section[name].(map[string]any)
		}
	}
	section[s.name()] = value
}

// name returns the part of the key after the last dot.
func (s setting) name() string { return s.key[strings.LastIndexByte(s.key, '.')+1:] }

// variable returns the name of the setting in the environment.
func (s setting) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// value returns the value of the setting in c.
func (s setting) value(c *Config) any { return s.field(c).Interface() }

// field returns the field of the setting in c.
func (s setting) field(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(s.index)
}

// vocabulary knows all names of settings and sections.
type vocabulary struct {
	settings []setting
	byKey    map[string]setting
	sections map[string]bool
}

func newVocabulary() *vocabulary {
	v := &vocabulary{settings: settings(), byKey: map[string]setting{}, sections: map[string]bool{}}
	for _, s := range v.settings {
		v.byKey[s.key] = s
		for section := s.section(); section != ""; section = sectionOf(section) {
			v.sections[section] = true
		}
	}
	return v
}

// unknown says what a key that is no setting may stand for.
func (v *vocabulary) unknown(key string) string {
	if v.sections[key] {
		return "is a section, not a setting; did you mean " + v.firstOf(key) + "?"
	}
	if best := v.nearest(key); best != "" {
		return "unknown key; did you mean " + best + "?"
	}
	if section := sectionOf(key); v.sections[section] {
		return "unknown key; " + section + " has: " + strings.Join(v.namesIn(section), ", ")
	}
	return "unknown key; the shipped config.yaml lists all of them"
}

func (v *vocabulary) firstOf(section string) string {
	for _, s := range v.settings {
		if s.section() == section {
			return s.key
		}
	}
	return ""
}

func (v *vocabulary) namesIn(section string) []string {
	var names []string
	for _, s := range v.settings {
		if s.section() == section {
			names = append(names, s.name())
		}
	}
	return names
}

// nearest returns the setting or section whose spelling is closest to key, or the setting of the
// same name in another section, or "".
func (v *vocabulary) nearest(key string) string {
	best, least := "", tolerance(key)+1
	consider := func(candidate string) {
		if d := distance(key, candidate); d < least {
			best, least = candidate, d
		}
	}
	for _, s := range v.settings {
		consider(s.key)
	}
	if !strings.Contains(key, ".") {
		for _, s := range v.settings { // in order, so that the answer is always the same
			if s.section() != "" {
				consider(s.section())
			}
		}
	}
	if best != "" {
		return best
	}
	name := key[strings.LastIndexByte(key, '.')+1:]
	for _, s := range v.settings {
		if s.name() == name {
			return s.key
		}
	}
	return ""
}

// longestSuggestible bounds the work of a suggestion; the names of all settings are much shorter.
const longestSuggestible = 64

// tolerance returns how many edits may separate a misspelt key from the right one.
func tolerance(key string) int {
	switch {
	case len(key) > longestSuggestible:
		return -1
	case len(key) <= 4:
		return 1
	case len(key) <= 8:
		return 2
	default:
		return 3
	}
}

// Like reports whether a word is a misspelling of another one, or that word itself.
func Like(word, other string) bool { return distance(word, other) <= tolerance(word) }

// distance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into
// b (optimal string alignment), in bytes and ignoring ASCII case. The distance of strings that are
// too long is the maximum.
func distance(a, b string) int {
	if len(a) > longestSuggestible || len(b) > longestSuggestible {
		return longestSuggestible
	}
	var before, last, row [longestSuggestible + 1]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			x, y := lower(a[i-1]), lower(b[j-1])
			cost := 1
			if x == y {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x == lower(b[j-2]) && lower(a[i-2]) == y {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
