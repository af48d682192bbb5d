//go:build !core

package config

import (
	"slices"
	"strings"
)

// LiveKeys returns the settings that take effect while a crawl runs, in the order of the file.
func LiveKeys() (keys []string) {
	for _, s := range settings() {
		if s.is("live") {
			keys = append(keys, s.key)
		}
	}
	return keys
}

// Live reports whether a change of a setting takes effect while a crawl runs.
func Live(key string) bool { return slices.Contains(LiveKeys(), key) }

// PatchOf makes a patch for LoadPatched from settings in the form of --set flags. The error is of
// type Errors.
func PatchOf(sets []string) (map[string]any, error) {
	words, r := newVocabulary(), newReport()
	patch := make(map[string]any)
	for _, g := range fromFlags(sets, words, r) {
		g.setting.put(patch, plain(g.setting, g.value))
	}
	if len(r.problems) > 0 {
		return nil, r.sorted()
	}
	return patch, nil
}

// GivenByFlag returns the settings of sections that --set has given, in the order of the config file.
func (c *Config) GivenByFlag(sections ...string) (keys []string) {
	for _, s := range settings() {
		section, _, _ := strings.Cut(s.key, ".")
		if c.origins[s.key].rank == rankFlag && slices.Contains(sections, section) {
			keys = append(keys, s.key)
		}
	}
	return keys
}
