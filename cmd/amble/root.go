package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
)

const rootLong = `amble is a polite crawler. It starts from the given URLs, crawls the sites they reach, never
faster than each host allows, keeps everything on disk, and continues after any kind of stop.

Settings come from config.yaml, the environment (AMBLE_POLITENESS_DELAY=2s) and --set flags; later ones are
stronger. The shipped config.yaml describes each of them.`

const rootExample = `  amble run https://example.com/              crawl, or continue a crawl`

const exitCodes = `
Exit codes:
    0  done
    1  the work found a problem
    2  wrong usage or configuration
    3  the database is in use by another process
    4  no seed of a run could be fetched
    5  the cluster refuses this node
    6  the database is damaged, or the file is none
  130  interrupted a second time
  134  the program itself crashed, by SIGABRT: please report it
`

// newRootCommand builds the whole command line.
func newRootCommand() *cobra.Command {
	root := console.Group("amble", "A polite crawler", rootLong)
	root.Example, root.Version = rootExample, programVersion()
	root.SetVersionTemplate("amble {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetUsageTemplate(root.UsageTemplate() + `{{if not .HasParent}}` + exitCodes + `{{end}}`)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return console.Wrong(err) })
	root.PersistentPreRunE = flagsThatGoTogether
	settings := &access.Settings{Version: programVersion(), Now: time.Now}
	settings.AddFlags(root)
	root.AddCommand(newRunCommand(settings), newConfigCommand(settings), newVersionCommand())
	for _, m := range modules() {
		root.Example = m.quickStart + root.Example
		if m.command != nil {
			root.AddCommand(m.command(settings))
		}
		if m.example != "" {
			root.Example += "\n  " + m.example
		}
	}
	return root
}

// flagsThatGoTogether reports flags that exclude each other as wrong usage.
func flagsThatGoTogether(command *cobra.Command, _ []string) error {
	if err := command.ValidateFlagGroups(); err != nil {
		return console.Wrong(err)
	}
	return nil
}
