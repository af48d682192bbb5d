//go:build !core

package main

import (
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/modules/warc/command"
)

// archiveModule is the output as web archives, and what reads it.
func archiveModule() module {
	return module{page: archivedPage, command: func(settings *settingsFlags) *cobra.Command {
		return group("archive", "Read the stored output",
			`Read the output files of a crawl, in output.dir. Nothing is changed, and a crawl may be running.`,
			archiveProgram(settings).Commands()...)
	}}
}

func archiveProgram(settings *settingsFlags) command.Program {
	return command.Program{Load: settings.load, Version: programVersion()}
}
