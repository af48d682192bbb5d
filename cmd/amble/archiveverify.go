package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/archive"
)

func newArchiveVerifyCommand(settings *settingsFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read all output and report what is wrong with it",
		Long: `Read all output files and report everything that is not as it should be: of WARC files the lengths, checksums and digests, which records
belong together, the originals of answers that were not stored twice, and the index; of the other files, whether each line is a JSON object.
A crawl may be running: the last record of a file that is being written may be incomplete.

Exit code 0: nothing is wrong. 1: something is, or there is no output. 2: wrong usage or settings.`,
		Example: `  amble archive verify
  amble archive verify --set output.dir=/srv/crawl/output`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			c, dir, err := openCollection(settings)
			if err != nil {
				return err
			}
			problems := 0
			out := command.OutOrStdout()
			v, err := c.Verify(command.Context(), func(p archive.Problem) {
				problems++
				_, _ = fmt.Fprintln(out, p) // the exit code says it too
			})
			if err != nil {
				return exit(exitProblem, err)
			}
			if problems > 0 {
				return exit(exitProblem, errors.New(dir+": "+plural(problems, "problem")))
			}
			_, err = fmt.Fprintf(out, "%s: no problems, %s in %s, %s, %s\n", dir, plural(v.Records, "WARC record"), plural(v.Files, "file"),
				plural(v.Lines, "JSON line"), size(uint64(v.Bytes)))
			return err
		},
	}
}
