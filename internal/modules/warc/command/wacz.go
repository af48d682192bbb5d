//go:build !core

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/wacz"
)

func (p Program) waczCommand() *cobra.Command {
	var o wacz.Options
	asJSON := false
	command := &cobra.Command{
		Use:   "wacz [PREFIX]",
		Short: "Pack the WARC files into one WACZ file",
		Long: `Pack all complete WARC files into one file in the format WACZ ` + wacz.Version + `, for ReplayWeb.page:
the records, an index, a list of the pages with their text, and a manifest with checksums. Files that were compressed
with zstd are compressed again with gzip, since the format allows no other. With the beginning of file names, only
those files: the collection with that output.prefix.

A crawl may be running. The file that it writes is left out until it is complete, which it is when the crawl
ends, at output.max_file and after output.max_age. With output.wacz the file is made at the end of each crawl.

If it is interrupted or killed, the same command goes on behind the last 64 MiB: what is done is in a directory
next to the file, with the ending .partial. It is done again if the WARC files have changed, or amble has.

Exit code 0: done. 1: no WARC file is complete, one cannot be read, or the file cannot be written. 2: wrong
usage or settings.`,
		Example: `  amble archive wacz
  amble archive wacz news-20261120
  amble archive wacz -o news.wacz --title "News of November"`,
		Args: console.AtMostOne("prefix"),
		RunE: func(command *cobra.Command, prefixes []string) error {
			o.Prefix = strings.Join(prefixes, "")
			c, err := p.Load()
			if err != nil {
				return err
			}
			ctx, stop := console.UntilInterrupted(command.Context())
			defer stop()
			r, err := p.pack(ctx, c, o)
			if err != nil {
				return console.Exit(console.ExitProblem, err)
			}
			if asJSON {
				return console.WriteJSON(command.OutOrStdout(), r)
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), packed(r))
			return err
		},
	}
	flags := command.Flags()
	flags.StringVarP(&o.Path, "output", "o", "", "`file` to write; it is replaced if it exists (default: PREFIX or "+
		"output.prefix in output.dir, with the ending .wacz)")
	flags.StringVar(&o.Title, "title", "", "title of the collection, for people (default: PREFIX or output.prefix)")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	return command
}

// pack makes a package of the output of the settings.
func (p Program) pack(ctx context.Context, c *config.Config, o wacz.Options) (wacz.Report, error) {
	collection, dir, err := p.open(c)
	if err != nil {
		return wacz.Report{}, err
	}
	name := cmp.Or(o.Prefix, c.Output.Prefix)
	o.Path = cmp.Or(o.Path, filepath.Join(dir, name+wacz.Extension))
	o.Title = cmp.Or(o.Title, name)
	o.Software, o.Now = "amble "+p.Version, p.Now()
	r, err := wacz.Write(ctx, collection, o)
	switch {
	case errors.Is(err, wacz.ErrEmpty) && o.Prefix != "":
		err = fmt.Errorf("%w in %s with a name that begins with %q: amble archive ls lists them", wacz.ErrEmpty, dir,
			o.Prefix)
	case errors.Is(err, wacz.ErrEmpty) && r.Open > 0:
		err = fmt.Errorf("%w: the one in %s is being written until the crawl ends, at output.max_file or after "+
			"output.max_age", wacz.ErrEmpty, dir)
	case errors.Is(err, wacz.ErrEmpty):
		err = fmt.Errorf("%w: %s has none; crawl with output.format: [warc]", wacz.ErrEmpty, dir)
	case errors.Is(err, context.Canceled):
		err = fmt.Errorf("%w; the same command goes on from here", err)
	case errors.Is(err, warc.ErrFormat), errors.Is(err, warc.ErrTorn):
		err = fmt.Errorf("%w; amble archive verify lists what is damaged", err)
	}
	return r, err
}

// packed says what a package holds.
func packed(r wacz.Report) string {
	text := fmt.Sprintf("%s: %s of %s, %s, %s", r.Path, console.Plural(r.Captures, "response"),
		console.Plural(r.Files, "WARC file"), console.Plural(r.Pages, "page"), console.Size(uint64(r.Bytes)))
	if r.Before > 0 {
		text += fmt.Sprintf("\n%s packed before, by a call that did not end", console.Were(r.Before, "WARC file"))
	}
	if r.Open > 0 {
		text += fmt.Sprintf("\nLeft out: %s being written", console.Are(r.Open, "WARC file"))
	}
	return text
}

// AtEnd makes the package that the settings ask for at the end of a crawl.
func (p Program) AtEnd(ctx context.Context, c *config.Config, log *slog.Logger) error {
	ctx, stop := console.UntilInterrupted(ctx)
	defer stop()
	r, err := p.pack(ctx, c, wacz.Options{})
	if errors.Is(err, wacz.ErrEmpty) {
		return nil // nothing was fetched
	}
	if err != nil {
		return fmt.Errorf("output.wacz: %w", err)
	}
	log.Info("the WARC files were packed", "file", r.Path, "files", r.Files, "pages", r.Pages, "bytes", r.Bytes)
	return nil
}
