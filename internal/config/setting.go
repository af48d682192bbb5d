package config

import (
	"reflect"
	"strings"
)

// setting is one leaf of Config: what it is called and what it holds.
type setting struct {
	key   string       // section.name, or name alone at the top
	typ   reflect.Type // of the field
	index []int        // of the field in Config
}

// settings lists every setting in the order of the struct, which is the order of the file.
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
		*list = append(*list, setting{key: key, typ: field.Type, index: at})
	}
}

// section is the part of the key before the dot, or "".
func (s setting) section() string {
	section, _, nested := strings.Cut(s.key, ".")
	if !nested {
		return ""
	}
	return section
}

// name is the part of the key after the dot.
func (s setting) name() string { return s.key[strings.LastIndexByte(s.key, '.')+1:] }

// variable is the name of the setting in the environment.
func (s setting) variable() string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// secret reports whether the value must not be printed.
func (s setting) secret() bool {
	switch s.key {
	case "server.token", "server.read_token", "fetch.auth", "fetch.proxy_auth":
		return true
	}
	return false
}

// value is the value of the setting in c.
func (s setting) value(c *Config) any {
	return reflect.ValueOf(c).Elem().FieldByIndex(s.index).Interface()
}

// vocabulary answers which names exist.
type vocabulary struct {
	settings []setting
	byKey    map[string]setting
	sections map[string]bool
}

func newVocabulary() *vocabulary {
	v := &vocabulary{settings: settings(), byKey: map[string]setting{}, sections: map[string]bool{}}
	for _, s := range v.settings {
		v.byKey[s.key] = s
		if s.section() != "" {
			v.sections[s.section()] = true
		}
	}
	return v
}

// unknown says what may have been meant by a key that is no setting.
func (v *vocabulary) unknown(key string) string {
	if v.sections[key] {
		return "is a section, not a setting; did you mean " + v.firstOf(key) + "?"
	}
	if best := v.nearest(key); best != "" {
		return "unknown key; did you mean " + best + "?"
	}
	section, _, _ := strings.Cut(key, ".")
	if v.sections[section] {
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

// nearest is the setting or section whose spelling is closest to key, or the setting of the same name in
// another section, or "".
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
		for _, s := range v.settings { // in order, for one answer always
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
