package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/amble-crawler/amble/internal/optout"
)

// Consent says what sites and people do not want to be done.
type Consent struct {
	OptOut string `mapstructure:"optout"` // file of opt-outs; empty: none
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
