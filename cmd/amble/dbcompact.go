package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/storage"
)

func newDBCompactCommand(settings *settingsFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Rewrite the database without free pages",
		Long: `Write the rows of the database in data_dir to a new file, without the pages that are free, and put it in the old one's place when
it is complete and on disk. The crawl must not be running. It needs room for both files; after an error the old one is as it was.

Exit code 0: done. 1: there is no database, it cannot be used, or there is no room. 2: wrong usage or settings. 3: another process has
the database.`,
		Example: `  amble db compact
  amble db compact --set data_dir=/srv/crawl`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.load()
			if err != nil {
				return err
			}
			before, after, err := storage.Compact(c.DataDir)
			if err != nil {
				return databaseError(command.Context(), c, err)
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s: %s before, %s after\n",
				filepath.Join(c.DataDir, storage.FileName), size(uint64(before)), size(uint64(after)))
			return err
		},
	}
}
