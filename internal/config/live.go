package config

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// PatchKeys returns the settings that a patch sets, in the order of the file.
func PatchKeys(patch map[string]any) (keys []string) {
	for _, s := range settings() {
		section := patch
		for name := range strings.SplitSeq(s.section(), ".") {
			if name != "" {
				section, _ = section[name].(map[string]any)
			}
		}
		if section[s.name()] != nil {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// Changes returns the settings in which another Config differs, in the order of the file.
func (c *Config) Changes(other *Config) (keys []string) {
	for _, s := range settings() {
		if !reflect.DeepEqual(s.value(c), s.value(other)) {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// Fixed returns the settings in which another Config differs and that cannot change while a crawl
// runs, as problems at their source.
func (c *Config) Fixed(other *Config) (fixed Errors) {
	words := newVocabulary()
	for _, key := range c.Changes(other) {
		s, source := words.byKey[key], other.origins[key].Source
		if !s.is("live") && !(s.is("file") && source.rank != rankPatch) {
			fixed = append(fixed, c.fixed(s, s.value(other), source))
		}
	}
	return fixed
}

// FixedIn returns the settings of a patch that cannot change while a crawl runs, even if the patch
// has other problems.
func (c *Config) FixedIn(patch []byte) (fixed Errors) {
	d := &document{path: PatchName, rank: rankPatch, words: newVocabulary(), r: newReport()}
	for _, g := range d.read(patch) {
		if !g.setting.is("live") && !reflect.DeepEqual(g.value, g.setting.value(c)) {
			fixed = append(fixed, c.fixed(g.setting, g.value, g.origin.Source))
		}
	}
	return fixed
}

// fixed is the problem of a changed value of a setting that cannot change.
func (c *Config) fixed(s setting, value any, source Source) Problem {
	message := "cannot change while the crawl runs, where it is " + s.show(format(s.value(c))) +
		": change it in the file and start the crawl again"
	if s.is("file") {
		message = "cannot be changed over the API: change it in the file and send the process SIGHUP, or start the " +
			"crawl again"
	}
	return Problem{Source: source, Key: s.key, Read: s.show(format(value)), Message: message}
}

// Entry is one setting in force.
type Entry struct {
	Key    string
	Value  any    // encodes as in the config file: text, number, bool, list of texts
	Source string // "default", "config.yaml:12", "AMBLE_LOG_LEVEL", "--set", "API"
	Live   bool   // a change takes effect while a crawl runs
}

// Entries returns all settings in force, in the order of the file. The value of a secret is whether
// it is set.
func (c *Config) Entries() []Entry {
	var list []Entry
	for _, s := range settings() {
		list = append(list, Entry{Key: s.key, Value: public(s, s.value(c)), Source: c.Source(s.key).String(),
			Live: s.is("live")})
	}
	return list
}

// public is plain without secrets.
func public(s setting, value any) any {
	switch v := value.(type) {
	case string:
		if v != "" && s.is("secret") {
			return notShown
		}
	case []string:
		if len(v) > 0 && s.is("secret") {
			return []string{notShown}
		}
	}
	return plain(s, value)
}

// plain returns a value as JSON and YAML have it, without types of Go.
func plain(s setting, value any) any {
	v := reflect.ValueOf(value)
	switch {
	case s.typ == reflect.TypeFor[ByteSize](), v.Kind() == reflect.Int64 && s.typ.PkgPath() != "":
		return format(value) // sizes and durations
	case v.Kind() == reflect.Slice && v.Len() == 0:
		return []string{}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		var list []any
		if err := yaml.Unmarshal([]byte(format(value)), &list); err != nil {
			return format(value)
		}
		return list
	}
	return value
}
