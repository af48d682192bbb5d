//go:build core

package config

import "github.com/amble-crawler/amble/internal/web/extract"

// ofModules refuses settings of modules that are not the defaults: this program is the core alone.
func (k *checker) ofModules() {
	defaults := Default()
	for _, key := range []string{"extract.rules", "audit.max_size", "audit.keep"} {
		if s := k.words.byKey[key]; format(s.value(k.c)) != format(s.value(&defaults)) {
			k.conflict(key, "is for what this program was built without (build tag core): leave it out, or use the "+
				"whole program")
		}
	}
}

// pageRules is empty: such settings are refused.
func pageRules([]ExtractRule) ([]extract.Rule, error) { return nil, nil }
