package config

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/rules/optout"
)

// Consent says what sites and people do not want to be done.
type Consent struct {
	OptOut string   `mapstructure:"optout" is:"path file"`
	Policy []string `mapstructure:"policy" is:"live shared"`
	TDMRep bool     `mapstructure:"tdmrep" is:"shared"`
	RSL    bool     `mapstructure:"rsl" is:"shared"`
}

// consent checks the section.
func (k *checker) consent() {
	const key = "consent.policy"
	seen := map[string]bool{}
	for i, item := range k.c.Consent.Policy {
		category, action, _ := strings.Cut(item, "=")
		if _, err := consent.NewPolicy(map[string]string{category: action}); err != nil {
			k.rejectItem(key, i, item, "want a category and an action, such as train-ai=skip-storing: "+err.Error())
		} else if seen[category] {
			k.rejectItem(key, i, item, "names a category that is in the list already; keep one")
		}
		seen[category] = true
	}
}

// ConsentPolicy returns what is done about pages whose use is refused. It returns no error for a Config
// from Load.
func (c *Config) ConsentPolicy() (consent.Policy, error) {
	actions := make(map[string]string)
	for _, item := range c.Consent.Policy {
		category, action, _ := strings.Cut(item, "=")
		actions[category] = action
	}
	return consent.NewPolicy(actions)
}

// OptOuts reads the file of consent.optout. An error names the file and the line.
func (c *Config) OptOuts() ([]optout.Entry, error) {
	if c.Consent.OptOut == "" {
		return nil, nil
	}
	entries, err := readOptOuts(c.Consent.OptOut)
	if err != nil {
		return nil, fmt.Errorf("%s: consent.optout: %s cannot be read: %w", c.Source("consent.optout"),
			c.Consent.OptOut, err)
	}
	return entries, nil
}

func readOptOuts(name string) (entries []optout.Entry, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		entries, err = optout.ReadFile(f, info.ModTime())
	}
	return entries, errors.Join(err, f.Close())
}
