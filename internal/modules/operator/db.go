//go:build !core

package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/storage"
)

func newDBCommand(settings *Program) *cobra.Command {
	return console.Group("db", "Maintain the database", "Maintain the database in data_dir.",
		newDBCheckCommand(settings),
		newDBStatsCommand(settings), newDBCompactCommand(settings), newDBBackupCommand(settings),
		newDBSalvageCommand(settings))
}

func newDBCheckCommand(settings *Program) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Verify the whole database",
		Long: `Read the whole database in data_dir and report everything that contradicts its format: damaged
pages, rows that cannot be read, URLs and counters that do not match, and what a crawl could not use of them.
Nothing is changed. The crawl must not be running; large databases take minutes.

Exit code 0: no problems. 1: there is no database. 2: wrong usage or settings. 3: another process has the
database. 6: there are problems, or the file is no database.`,
		Example: `  amble db check
  amble db check --set data_dir=/srv/crawl`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			return checkDatabase(command, c)
		},
	}
}

func checkDatabase(command *cobra.Command, c *config.Config) error {
	findings := 0
	out := command.OutOrStdout()
	report := func(f storage.Finding) {
		findings++
		_, _ = fmt.Fprintln(out, f.Text) // the exit code says it too
	}
	store, err := storage.Open(c.DataDir, storage.Options{ReadOnly: true})
	if errors.Is(err, storage.ErrCorrupt) {
		err = cmp.Or(storage.CheckDamaged(command.Context(), c.DataDir, report), err)
	}
	if err != nil {
		return access.DatabaseError(command.Context(), c, err)
	}
	err = crawl.Check(command.Context(), store, report)
	path, n := store.Path(), store.Counters()
	if err = errors.Join(err, store.Close()); err != nil {
		return access.DatabaseError(command.Context(), c, fmt.Errorf("%s: %w", path, err))
	}
	if findings > 0 {
		return console.Exit(console.ExitDamaged,
			fmt.Errorf("%s: %s; %s", path, console.Plural(findings, "problem"), access.DamageAdvice(c)))
	}
	_, err = fmt.Fprintf(out, "%s: no problems, %s of %s\n", path, console.Plural(n.URLs, "URL"),
		console.Plural(n.Hosts, "host"))
	return err
}

func newDBStatsCommand(settings *Program) *cobra.Command {
	p := console.Printer{}
	command := &cobra.Command{
		Use:   "stats",
		Short: "Print the size of each part of the database",
		Long: `Read all pages of the database in data_dir and print the size and the number of rows of each
bucket, and the number of free pages. The crawl must not be running.

Exit code 0: done. 1: there is no database, or it cannot be used. 2: wrong usage or settings. 3: another process has the
database.`,
		Example: `  amble db stats
  amble db stats --json`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			stats, path, err := readStats(command, settings)
			if err != nil {
				return err
			}
			return p.Object(command.OutOrStdout(), statsObject(&stats), func(w io.Writer) error {
				return printStats(w, path, &stats)
			})
		},
	}
	p.ObjectFlag(command, "print one JSON object")
	return command
}

func readStats(command *cobra.Command, settings *Program) (stats storage.Stats, path string, err error) {
	c, err := settings.Load()
	if err != nil {
		return stats, "", err
	}
	store, err := storage.Open(c.DataDir, storage.Options{ReadOnly: true})
	if err != nil {
		return stats, "", access.DatabaseError(command.Context(), c, err)
	}
	defer store.Close()
	stats, err = store.Stats(command.Context())
	return stats, store.Path(), err
}

func printStats(w io.Writer, path string, s *storage.Stats) error {
	free := uint64(s.FreePages) * uint64(s.PageSize)
	if _, err := fmt.Fprintf(w, "%s: %s in %s of %s; %s free (%s)\n", path, console.Size(uint64(s.FileBytes)),
		console.Plural(uint64(s.FileBytes)/uint64(s.PageSize), "page"), console.Size(uint64(s.PageSize)),
		console.Grouped(s.FreePages),
		console.Size(free)); err != nil {
		return err
	}
	t := console.NewTable(w, "BUCKET", "ROWS", "BYTES", "IN USE", "LEVELS")
	for _, b := range s.Buckets {
		used := "-"
		if b.Bytes > 0 {
			used = fmt.Sprintf("%d%%", 100*b.InUse/b.Bytes)
		}
		_ = t.Row(b.Name, console.Grouped(b.Rows), console.Size(uint64(b.Bytes)), used, console.Grouped(b.Levels))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	each := ""
	if s.Counters.URLs > 0 {
		each = fmt.Sprintf(", %d bytes of the file for each", uint64(s.FileBytes)/s.Counters.URLs)
	}
	_, err := fmt.Fprintf(w, "%s of %s%s\n", console.Plural(s.Counters.URLs, "URL"),
		console.Plural(s.Counters.Hosts, "host"), each)
	return err
}

// bucketObject is the JSON form of a bucket.
type bucketObject struct {
	Name   string `json:"name"`
	Rows   int    `json:"rows"`
	Bytes  int64  `json:"bytes"`
	InUse  int64  `json:"in_use_bytes"`
	Levels int    `json:"levels"`
}

func statsObject(s *storage.Stats) any {
	buckets := make([]bucketObject, len(s.Buckets))
	for i, b := range s.Buckets {
		buckets[i] = bucketObject(b)
	}
	return struct {
		FileBytes int64          `json:"file_bytes"`
		PageSize  int            `json:"page_size"`
		FreePages int            `json:"free_pages"`
		URLs      uint64         `json:"urls"`
		Hosts     uint64         `json:"hosts"`
		Buckets   []bucketObject `json:"buckets"`
	}{s.FileBytes, s.PageSize, s.FreePages, s.Counters.URLs, s.Counters.Hosts, buckets}
}

func newDBBackupCommand(settings *Program) *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIRECTORY",
		Short: "Copy the database of a running or stopped crawl",
		Long: `Copy the database in data_dir to a directory, which is made if it does not exist, and read the
copy once. The copy is consistent. A running crawl continues and serves the copy over its API: it copies the
database to a file under data_dir first. If there is no room for that, the copy must be written within a
minute plus the time it takes at 32 MiB/s, or the crawl breaks it off. Set data_dir to the directory to
inspect or continue the crawl as of the copy; later requests are repeated.

Exit code 0: done. 1: there is no database, it cannot be used, or the copy cannot be written. 2: wrong usage
or settings. 3: another process has the database and no API answers.`,
		Example: `  amble db backup /backup/amble-monday`,
		Args:    console.Exactly(1, "DIRECTORY"),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := settings.Crawl()
			if err != nil {
				return err
			}
			n, err := backup(command.Context(), c, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", filepath.Join(args[0], storage.FileName),
				console.Size(uint64(n)))
			return err
		},
	}
}

// backup copies the database into a directory. The copy gets its name when it is complete and was
// read.
func backup(ctx context.Context, c *access.Crawl, dir string) (n int64, err error) {
	path := filepath.Join(dir, storage.FileName)
	if _, err := os.Stat(path); err == nil {
		return 0, console.Exit(console.ExitUsage, fmt.Errorf("%s exists already: name another directory", path))
	}
	source, err := c.Source(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return 0, console.Exit(console.ExitProblem, err)
	}
	part, err := os.MkdirTemp(dir, "backup-*")
	if err != nil {
		return 0, console.Exit(console.ExitProblem, err)
	}
	defer os.RemoveAll(part)
	if n, err = copyDatabase(ctx, source, part); err == nil {
		err = os.Rename(filepath.Join(part, storage.FileName), path)
	}
	if err != nil {
		return n, console.Exit(console.ExitProblem, fmt.Errorf("back up to %s: %w", dir, err))
	}
	return n, nil
}

// copyDatabase writes the file, and opens it as a crawl would.
func copyDatabase(ctx context.Context, from access.Source, dir string) (int64, error) {
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

func newDBCompactCommand(settings *Program) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Rewrite the database without free pages",
		Long: `Write the rows of the database in data_dir to a new file without free pages, and replace the
old file when the new one is complete and on disk. The crawl must not be running. There must be room for both
files. After an error the old file is unchanged.

Exit code 0: done. 1: there is no database, it cannot be used, or there is no room. 2: wrong usage or
settings. 3: another process has the database.`,
		Example: `  amble db compact
  amble db compact --set data_dir=/srv/crawl`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			before, after, err := storage.Compact(c.DataDir)
			if err != nil {
				return access.DatabaseError(command.Context(), c, err)
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s: %s before, %s after\n",
				filepath.Join(c.DataDir, storage.FileName), console.Size(uint64(before)), console.Size(uint64(after)))
			return err
		},
	}
}
