//go:build core

package config

import "github.com/amble-crawler/amble/internal/web/extract"

// extractRules refuses rules: this program is the core alone.
func (k *checker) extractRules() {
	if len(k.c.Extract.Rules) > 0 {
		k.conflict("extract.rules", "asks for what this program was built without (build tag core): leave it out, or "+
			"use the whole program")
	}
}

func (c *Config) ruleOptions() ([]extract.Rule, error) { return nil, nil }
