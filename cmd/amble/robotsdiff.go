package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/robots"
)

func newRobotsDiffCommand(settings *settingsFlags) *cobra.Command {
	flags := &robotsFlags{settings: settings}
	command := &cobra.Command{
		Use:   "diff [--agent TOKEN]... OLD NEW",
		Short: "Say what a change of robots.txt means for a crawler",
		Long: `Say what changed for the crawler between two robots.txt files, each a file or a URL: which group applies, its delays
and its rules. What stands in other groups, or only moved, is no change. Lines that begin with - are in the old file only,
those with + in the new one. With --json each line is an object with added, line and text.

Exit code 0: nothing changed for the crawler. 1: something did. 2: error.`,
		Example: `  amble robots diff yesterday.txt today.txt --agent amble
  amble robots diff robots.txt https://example.com/robots.txt`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) != 2 {
				return usagef("want two robots.txt, the old and the new, each a file or a URL; %d given", len(files))
			}
			return nil
		},
		RunE: func(command *cobra.Command, files []string) error { return flags.diff(command, files) },
	}
	flags.addCommon(command)
	return command
}

func (f *robotsFlags) diff(command *cobra.Command, files []string) error {
	tokens, err := f.tokens(command)
	if err != nil {
		return err
	}
	reader := robotsReader{settings: f.settings}
	var parsed [2]*robots.File
	for i, from := range files {
		record, err := reader.read(command.Context(), from)
		if err != nil {
			return err
		}
		if note := standing(record); note != "" {
			return asUsage(fmt.Errorf("%s cannot be compared: %s", from, printable(note)))
		}
		parsed[i] = robots.Parse(record.Body)
	}
	changes := robots.Diff(parsed[0], parsed[1], tokens...)
	if err := f.printChanges(command.OutOrStdout(), changes); err != nil {
		return asUsage(err)
	}
	if len(changes) > 0 {
		return exit(exitProblem, nil)
	}
	return nil
}

// shownChange is the JSON of one change. Names are part of the contract.
type shownChange struct {
	Added bool   `json:"added"`
	Line  int    `json:"line"` // in the file that has it; 0 where it is no single line
	Text  string `json:"text"`
}

func (f *robotsFlags) printChanges(w io.Writer, changes []robots.Change) error {
	for _, c := range changes {
		var err error
		if f.json {
			err = writeJSON(w, shownChange(c))
		} else {
			_, err = fmt.Fprintln(w, printable(c.String()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
