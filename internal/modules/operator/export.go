//go:build !core

package operator

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/inspect"
)

// exportFlags are the flags of amble export.
type exportFlags struct {
	console.Printer
	state, format, seed, tag string
}

func newExportCommand(settings *Program) *cobra.Command {
	f := exportFlags{Printer: console.Printer{Default: console.Lines}}
	command := &cobra.Command{
		Use:   "export",
		Short: "Write every known URL, as JSON lines or CSV",
		Long: `Write one JSON object a line for every known URL, host by host in the order of discovery.
docs/OUTPUT.md describes the fields; amble import reads such lines. A running crawl serves the export over its
API and continues, so that the first lines may be older than the last ones. Otherwise the database is opened
read-only.

With --format urlfrontier the lines are those that the client of URLFrontier reads with PutURLs: URLs that have
not been fetched yet are discovered, all others known.

With -o the file gets its name when it is complete. A name that ends in .csv makes it CSV, with the fields as
columns; .gz or .zst behind the name compresses it.

Exit code 0: done. 1: there is no database, it cannot be used, or the file cannot be written. 2: wrong usage
or settings. 3: another process has the database and no API answers.`,
		Example: `  amble export -o urls.jsonl.zst
  amble export --state failed -o failed.csv
  amble export --state failed | jq -r .url
  amble export --format urlfrontier -o dump.jsonl.gz`,
		Args: func(command *cobra.Command, args []string) error {
			return errors.Join(console.NoArguments(command, args), settings.checkFormat(f.format))
		},
		RunE: func(command *cobra.Command, _ []string) error {
			q := inspect.URLQuery{}
			if err := errors.Join(q.Filter(f.state, ""), q.OfSeed(f.seed, f.tag), f.Check()); err != nil {
				return console.Usagef("%w", err)
			}
			return settings.Inspect(command.Context(), func(i access.Inspector) error {
				return f.write(command, i, q, settings)
			})
		},
	}
	command.Flags().StringVar(&f.state, "state", "", "only URLs in this `state`")
	command.Flags().StringVar(&f.seed, "seed", "", "only pages of this seed, by its `URL`")
	command.Flags().StringVar(&f.tag, "tag", "", "only pages of seeds with this `tag`")
	f.FileFlags(command)
	command.Flags().StringVar(&f.format, "format", "", "the `format` of the lines: "+either(settings.formats())+
		"; default: amble's own")
	command.MarkFlagsMutuallyExclusive("format", "csv")
	console.Offer(command, "state", stateNames())
	console.Offer(command, "format", settings.formats())
	return command
}

// write writes the lines.
func (f *exportFlags) write(command *cobra.Command, i access.Inspector, q inspect.URLQuery, settings *Program) error {
	table := urlsTable()
	if format, known := settings.formatOf(f.format); known {
		table.Write = format.Write
	}
	list, err := console.NewList(&f.Printer, command, table)
	if err != nil {
		return err
	}
	_, err = i.URLs(command.Context(), q, "", list.Row)
	return list.End(err, nil, "")
}
