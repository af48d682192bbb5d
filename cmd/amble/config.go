package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
)

func newConfigCommand(settings *settingsFlags) *cobra.Command {
	return group("config", "Check and show the settings",
		"Check the settings, or show which are in force and where each of them comes from.",
		newConfigCheckCommand(settings),
		newConfigShowCommand(settings),
	)
}

func newConfigCheckCommand(settings *settingsFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Report everything that is wrong with the settings and the seeds",
		Long: `Report everything that is wrong with the settings and the seeds, one line each, with the file and line, what
was read and what is allowed. Nothing is fetched and no database is opened.

Exit code 0: nothing is wrong. 2: something is.`,
		Example: `  amble config check
  amble config check -c /etc/amble/config.yaml
  AMBLE_POLITENESS_DELAY=fast amble config check`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.load()
			if err != nil {
				return err
			}
			return checkSettings(command, c)
		},
	}
}

// checkSettings reports on settings that could be loaded: the seeds, and what is allowed but worth knowing.
func checkSettings(command *cobra.Command, c *config.Config) error {
	good, bad := 0, 0
	config.VisitSeeds(c, nil, func(config.Seed) { good++ }, func(b config.BadSeed) {
		bad++
		command.PrintErrln("amble:", b)
	})
	for _, w := range c.Warnings() {
		command.PrintErrln("warning:", w)
	}
	if bad > 0 {
		return exit(exitUsage, fmt.Errorf("%d bad and %d good seeds; a crawl would go on with the good ones", bad, good))
	}
	name := c.File()
	if name == "" {
		name = "no config file, defaults"
	}
	_, err := fmt.Fprintf(command.OutOrStdout(), "%s: no problems, %d seeds\n", name, good)
	return err
}

func newConfigShowCommand(settings *settingsFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print the settings in force and the source of each",
		Long: `Print the settings in force as a config file, with the source of each behind it: the default, a line of the file, a
variable of the environment, or --set. The token of the API is not printed.`,
		Example: `  amble config show
  amble config show --set politeness.delay=2s | grep -v default`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.load()
			if err != nil {
				return err
			}
			return c.Show(command.OutOrStdout())
		},
	}
}
