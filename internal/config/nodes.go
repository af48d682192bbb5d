//go:build !core

package config

import (
	"crypto/sha256"
	"encoding/hex"
)

// Shared returns the settings that all nodes of a cluster have in common, by their keys, as a config file has them.
func (c *Config) Shared() map[string]any {
	all := make(map[string]any)
	for _, s := range settings() {
		if s.is("shared") {
			all[s.key] = plain(s, s.value(c))
		}
	}
	return all
}

// longestAgreed is the longest text of a value that Agreed has as it is.
const longestAgreed = 200

// Agreed returns the settings that all nodes of a cluster have to agree on, by their keys: those that decide which URLs
// a crawl has, whether they may be fetched, what a commit does with them, and when the crawl is over. The pace of
// requests is the cluster's too: see Shared. What is consented to and the output are those of each node, and may be
// changed from one to the next.
func (c *Config) Agreed() map[string]string {
	all := make(map[string]string)
	for _, s := range settings() {
		if !s.is("agreed") {
			continue
		}
		text := format(s.value(c))
		if words, are := s.value(c).([]string); are {
			text = formatWords(words)
		}
		if len(text) > longestAgreed {
			sum := sha256.Sum256([]byte(text))
			text = "a value with SHA-256 " + hex.EncodeToString(sum[:8])
		}
		all[s.key] = text
	}
	return all
}

// PatchOfKeys makes a patch for LoadPatched from values by their keys, such as those of Shared.
func PatchOfKeys(values map[string]any) map[string]any {
	patch := make(map[string]any)
	for key, value := range values {
		setting{key: key}.put(patch, value)
	}
	return patch
}
