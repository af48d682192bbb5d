package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/storage"
)

func newDBBackupCommand(settings *settingsFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIRECTORY",
		Short: "Copy the database while the crawl goes on",
		Long: `Copy the database in data_dir to a directory, which is made if there is none, and read the copy once. The copy
is of one moment; a running crawl gives it over its API and goes on. It copies the database to a file under
data_dir first. If there is no room for that, the copy must be written within a minute and at 32 MiB/s behind
that, or the crawl breaks it off. With data_dir set to the directory the crawl can be looked at, and goes on
from there: what was fetched since is fetched again.

Exit code 0: done. 1: there is no database, it cannot be used, or the copy cannot be written. 2: wrong usage or settings. 3: another
process has the database and no API answers.`,
		Example: `  amble db backup /backup/amble-monday`,
		Args:    exactly(1, "DIRECTORY"),
		RunE: func(command *cobra.Command, given []string) error {
			c, err := settings.load()
			if err != nil {
				return err
			}
			n, err := backup(command.Context(), c, given[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", filepath.Join(given[0], storage.FileName), size(uint64(n)))
			return err
		},
	}
}

// backup copies the database into a directory, where it takes its name when it is complete and can be read.
func backup(ctx context.Context, c *config.Config, dir string) (n int64, err error) {
	path := filepath.Join(dir, storage.FileName)
	if _, err := os.Stat(path); err == nil {
		return 0, exit(exitUsage, fmt.Errorf("%s is there already: name another directory", path))
	}
	source, err := openSource(ctx, c)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return 0, exit(exitProblem, err)
	}
	part, err := os.MkdirTemp(dir, "backup-*")
	if err != nil {
		return 0, exit(exitProblem, err)
	}
	defer os.RemoveAll(part)
	if n, err = copyDatabase(ctx, source, part); err == nil {
		err = os.Rename(filepath.Join(part, storage.FileName), path)
	}
	if err != nil {
		return n, exit(exitProblem, fmt.Errorf("back up to %s: %w", dir, err))
	}
	return n, nil
}

// databaseSource gives copies of a database.
type databaseSource interface {
	Backup(context.Context, io.Writer) (int64, error)
	io.Closer
}

// openSource is the running crawl, or the database of one that does not run.
func openSource(ctx context.Context, c *config.Config) (databaseSource, error) {
	client, store, err := openCrawl(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case client != nil:
		return client, nil
	}
	return storedSource{store}, nil
}

type storedSource struct{ *storage.Store }

// Backup is part of databaseSource.
func (s storedSource) Backup(_ context.Context, w io.Writer) (int64, error) {
	return s.Store.Backup(func(int64) (io.Writer, error) { return w, nil })
}

// copyDatabase writes the file, and opens it as a crawl would.
func copyDatabase(ctx context.Context, from databaseSource, dir string) (int64, error) {
	f, err := os.OpenFile(filepath.Join(dir, storage.FileName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return 0, err
	}
	n, err := from.Backup(ctx, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return n, err
	}
	store, err := storage.Open(dir, storage.Options{ReadOnly: true})
	if err != nil {
		return n, fmt.Errorf("the copy cannot be read: %w", err)
	}
	return n, store.Close()
}
