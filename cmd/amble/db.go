package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/storage"
)

func newDBCommand(settings *settingsFlags) *cobra.Command {
	return group("db", "Look after the database", "Look after the database in data_dir.", newDBCheckCommand(settings), newDBStatsCommand(settings), newDBCompactCommand(settings), newDBBackupCommand(settings))
}

func newDBCheckCommand(settings *settingsFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Read the whole database and report what is wrong with it",
		Long: `Read the whole database in data_dir and report everything that contradicts its format: damaged pages, rows that cannot be read,
URLs and counters that do not match. Nothing is changed. The crawl must not be running; large databases take minutes.

Exit code 0: nothing is wrong. 1: something is, or the file is no database. 2: wrong usage or settings. 3: another process has the
database.`,
		Example: `  amble db check
  amble db check --set data_dir=/srv/crawl`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.load()
			if err != nil {
				return err
			}
			return checkDatabase(command, c)
		},
	}
}

func checkDatabase(command *cobra.Command, c *config.Config) error {
	store, err := storage.Open(c.DataDir, storage.Options{ReadOnly: true})
	if err != nil {
		return databaseError(command.Context(), c, err)
	}
	findings := 0
	out := command.OutOrStdout()
	err = readAll(command.Context(), store, func(f storage.Finding) {
		findings++
		_, _ = fmt.Fprintln(out, f.Text) // the exit code says it too
	})
	path, n := store.Path(), store.Counters()
	if err = errors.Join(err, store.Close()); err != nil {
		return exit(exitProblem, fmt.Errorf("%s: %w", path, err))
	}
	if findings > 0 {
		return exit(exitProblem, fmt.Errorf("%s: %s; restore it from a copy, or begin anew with another data_dir", path, plural(findings, "problem")))
	}
	_, err = fmt.Fprintf(out, "%s: no problems, %s of %s\n", path, plural(n.URLs, "URL"), plural(n.Hosts, "host"))
	return err
}

// readAll is storage.Check for files that may be damaged in any way: what makes reading impossible is a finding too.
func readAll(ctx context.Context, store *storage.Store, report func(storage.Finding)) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a page that leads out of the mapped file
	defer func() {
		if failure := recover(); failure != nil {
			report(storage.Finding{Text: fmt.Sprintf("the pages cannot be followed any further: %v", failure)})
		}
	}()
	return store.Check(ctx, report)
}
