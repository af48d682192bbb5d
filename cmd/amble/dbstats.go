package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/storage"
)

func newDBStatsCommand(settings *settingsFlags) *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:   "stats",
		Short: "Say what the database consists of",
		Long: `Read all pages of the database in data_dir and say what each of its buckets takes, how many rows it has, and how many pages are free for
new rows. The crawl must not be running.

Exit code 0: done. 1: there is no database, or it cannot be used. 2: wrong usage or settings. 3: another process has the
database.`,
		Example: `  amble db stats
  amble db stats --json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			stats, path, err := readStats(command, settings)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(command.OutOrStdout(), statsObject(&stats))
			}
			return printStats(command.OutOrStdout(), path, &stats)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return command
}

func readStats(command *cobra.Command, settings *settingsFlags) (stats storage.Stats, path string, err error) {
	c, err := settings.load()
	if err != nil {
		return stats, "", err
	}
	store, err := storage.Open(c.DataDir, storage.Options{ReadOnly: true})
	if err != nil {
		return stats, "", databaseError(command.Context(), c, err)
	}
	defer store.Close()
	stats, err = store.Stats(command.Context())
	return stats, store.Path(), err
}

func printStats(w io.Writer, path string, s *storage.Stats) error {
	free := uint64(s.FreePages) * uint64(s.PageSize)
	if _, err := fmt.Fprintf(w, "%s: %s in %s of %s; %s free (%s)\n", path, size(uint64(s.FileBytes)),
		plural(uint64(s.FileBytes)/uint64(s.PageSize), "page"), size(uint64(s.PageSize)), grouped(s.FreePages), size(free)); err != nil {
		return err
	}
	t := newTable(w, "BUCKET", "ROWS", "BYTES", "IN USE", "LEVELS")
	for _, b := range s.Buckets {
		used := "-"
		if b.Bytes > 0 {
			used = fmt.Sprintf("%d%%", 100*b.InUse/b.Bytes)
		}
		_ = t.row(b.Name, grouped(b.Rows), size(uint64(b.Bytes)), used, grouped(b.Levels))
	}
	if err := t.flush(); err != nil {
		return err
	}
	each := ""
	if s.Counters.URLs > 0 {
		each = fmt.Sprintf(", %d bytes of the file for each", uint64(s.FileBytes)/s.Counters.URLs)
	}
	_, err := fmt.Fprintf(w, "%s of %s%s\n", plural(s.Counters.URLs, "URL"), plural(s.Counters.Hosts, "host"), each)
	return err
}

// bucketObject is one bucket of the JSON form.
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
