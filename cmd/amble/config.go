package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

func newConfigCommand(settings *access.Settings) *cobra.Command {
	return console.Group("config", "Check and show the settings",
		"Check the settings, or show the settings in force and the source of each.",
		newConfigCheckCommand(settings),
		newConfigShowCommand(settings),
	)
}

func newConfigCheckCommand(settings *access.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Report all problems of the settings and the seeds",
		Long: `Report all problems of the settings and the seeds, one a line, with the file and line, the
value read and the values allowed. Nothing is fetched and no database is opened.

Exit code 0: no problems. 2: there are problems.`,
		Example: `  amble config check
  amble config check -c /etc/amble/config.yaml
  AMBLE_POLITENESS_DELAY=fast amble config check`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			return checkSettings(command, c)
		},
	}
}

// checkSettings reports on settings that were loaded: bad seeds, and warnings.
func checkSettings(command *cobra.Command, c *config.Config) error {
	if _, err := c.OptOuts(); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	good, bad := 0, 0
	config.VisitSeeds(c, nil, func(crawl.Seed) { good++ }, func(b config.BadSeed) {
		bad++
		command.PrintErrln("amble:", b)
	})
	for _, w := range c.Warnings() {
		command.PrintErrln("warning:", w)
	}
	if bad > 0 {
		return console.Exit(console.ExitUsage,
			fmt.Errorf("%d bad and %d good seeds; a crawl would use the good ones", bad, good))
	}
	name := c.File()
	if name == "" {
		name = "no config file, defaults"
	}
	_, err := fmt.Fprintf(command.OutOrStdout(), "%s: no problems, %d seeds\n", name, good)
	return err
}

func newConfigShowCommand(settings *access.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the settings in force and the source of each",
		Long: `Print the settings in force as a config file, with the source of each after it: the default, a
line of the file, an environment variable, or --set. Secrets are not printed.`,
		Example: `  amble config show
  amble config show --set politeness.delay=2s | grep -v default`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			return c.Show(command.OutOrStdout())
		},
	}
}
