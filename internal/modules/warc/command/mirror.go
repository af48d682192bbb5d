//go:build !core

package command

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/warc/mirror"
)

func (p Program) mirrorCommand() *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:   "mirror DIR",
		Short: "Write the stored pages as files that a browser opens",
		Long: `Write the newest stored response of each URL to a file below DIR, which must not exist. Links lead to the
files of stored pages, also through stored redirects; a link to what is not stored is absolute. The names of files are
safe on every file system, and ` + mirror.IndexFile + ` has a link to the first page of each site.

Responses with another status than 200 are left out. A crawl may be running; the WARC file that it writes is
left out until it is complete.

Exit code 0: done. 1: nothing is stored, DIR exists, or something cannot be read or written. 2: wrong usage or
settings.`,
		Example: `  amble archive mirror site`,
		Args:    console.Exactly(1, "one directory"),
		RunE: func(command *cobra.Command, args []string) error {
			c, dir, err := p.Open()
			if err != nil {
				return err
			}
			ctx, stop := console.UntilInterrupted(command.Context())
			defer stop()
			r, err := mirror.Write(ctx, c, args[0], func(url string, err error) {
				command.PrintErrf("amble: %s was left out: %s\n", url, console.Printable(err.Error()))
			})
			switch {
			case errors.Is(err, mirror.ErrExists):
				err = fmt.Errorf("%w; name a directory that does not, or remove it", err)
			case errors.Is(err, mirror.ErrEmpty):
				err = fmt.Errorf("%w in %s: amble archive ls lists what is there", err, dir)
			}
			if err != nil {
				return console.Exit(console.ExitProblem, err)
			}
			if asJSON {
				err = console.WriteJSON(command.OutOrStdout(), r)
			} else {
				_, err = fmt.Fprintf(command.OutOrStdout(), "%s: %s, %s of them HTML, %s; begin with %s\n", r.Dir,
					console.Plural(r.Files, "file"), console.Grouped(r.Pages), console.Size(uint64(r.Bytes)),
					filepath.Join(r.Dir, mirror.IndexFile))
			}
			if r.Unreadable > 0 {
				err = errors.Join(err, console.Exit(console.ExitProblem, fmt.Errorf("%s unreadable and left out",
					console.Are(r.Unreadable, "response"))))
			}
			return err
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return command
}
