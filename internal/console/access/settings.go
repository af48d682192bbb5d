// Package access opens the settings of a command, and the crawl of a data directory, whether it runs or not: the
// running crawl over its API, or else its database. What a command does, it does through one interface that both have.
package access

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
)

// Settings are the flags that name the settings.
type Settings struct {
	File string
	Sets []string

	Version string // of the program
	Now     func() time.Time
}

// AddFlags adds the flags to all commands below root.
func (s *Settings) AddFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVarP(&s.File, "config", "c", "", "config `file`; default: ./config.yaml if it exists")
	flags.StringArrayVar(&s.Sets, "set", nil, "one setting as `key=value`, stronger than file and environment; may "+
		"be repeated")
	console.Complete(root, "config",
		cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt))
	console.Complete(root, "set", completeSetting)
}

// Load loads the settings of this process.
func (s *Settings) Load() (*config.Config, error) {
	return s.Patched(nil)
}

// Patched is Load with settings that are stronger than all others.
func (s *Settings) Patched(patch []byte) (*config.Config, error) {
	return config.LoadPatched(s.File, s.Sets, os.Environ(), patch)
}

// completeSetting offers the names of the settings, each with its default. After a name it offers
// the values, if there are few.
func completeSetting(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return offerSettings(begun, func(string) bool { return true })
}

func offerSettings(begun string, wanted func(key string) bool) (offers []string, _ cobra.ShellCompDirective) {
	if key, value, isValue := strings.Cut(begun, "="); isValue {
		for _, choice := range config.Choices(key) {
			if strings.HasPrefix(choice, value) && wanted(key) {
				offers = append(offers, key+"="+choice)
			}
		}
		return offers, cobra.ShellCompDirectiveNoFileComp
	}
	for _, d := range config.Describe() {
		if strings.HasPrefix(d.Key, begun) && wanted(d.Key) {
			offers = append(offers, cobra.CompletionWithDesc(d.Key+"=", "default: "+d.Default))
		}
	}
	return offers, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
