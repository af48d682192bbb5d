package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/robots"
)

func newRobotsCommand(settings *settingsFlags) *cobra.Command {
	return group("robots", "Ask what a robots.txt says to a crawler",
		"Ask what a robots.txt says to a crawler, which of its lines says so, and what a change of it means.",
		newRobotsCheckCommand(settings),
		newRobotsShowCommand(settings),
		newRobotsDiffCommand(settings),
	)
}

// robotsFlags are the flags that the commands about robots.txt have in common.
type robotsFlags struct {
	settings *settingsFlags
	from     string // not for diff, which has arguments instead
	agents   []string
	json     bool
}

func (f *robotsFlags) addFrom(command *cobra.Command) {
	command.Flags().StringVar(&f.from, "robots", "", "`file or URL` of the robots.txt; a URL is asked for as the crawler would ask")
}

func (f *robotsFlags) addCommon(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&f.agents, "agent", nil, "product `token` of the crawler; of several the first with a group of its own counts (default: robots.product_token and robots.fallback_tokens)")
	flags.BoolVar(&f.json, "json", false, "print JSON")
}

// tokens are the product tokens asked about, the strongest first.
func (f *robotsFlags) tokens(command *cobra.Command) ([]string, error) {
	if command.Flags().Changed("agent") {
		if len(f.agents) == 0 || slices.Contains(f.agents, "") {
			return nil, usagef("--agent is empty; want a product token such as amble")
		}
		return f.agents, nil
	}
	c, err := f.settings.load()
	if err != nil {
		return nil, err
	}
	return c.ProductTokens(), nil
}

// read returns the tokens, and what the robots.txt of --robots says. What the answer to a URL means is noted where it is not
// plainly a file.
func (f *robotsFlags) read(command *cobra.Command) (tokens []string, record robots.Record, err error) {
	if f.from == "" {
		return nil, record, usagef("which robots.txt? Give its file or URL with --robots")
	}
	if tokens, err = f.tokens(command); err != nil {
		return nil, record, err
	}
	reader := robotsReader{settings: f.settings}
	if record, err = reader.read(command.Context(), f.from); err != nil {
		return nil, record, err
	}
	if note := standing(record); note != "" {
		command.PrintErrln("note:", printable(note))
	}
	return tokens, record, nil
}
