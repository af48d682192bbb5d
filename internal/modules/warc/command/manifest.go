//go:build !core

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/records/digest"
)

func (p Program) manifestCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "manifest [PREFIX]",
		Short: "Print the checksums of the complete output files",
		Long: `Print a line with the SHA-256 of each complete output file and of each index, in the format of sha256sum,
which checks it: amble archive manifest > SHA256SUMS, and in the directory of the files sha256sum -c SHA256SUMS.
With the beginning of file names, only of those: a crawl with its own output.prefix, such as news-20261120,
is a collection with that name.

Exit code 0: done. 1: there is no such file, or one cannot be read. 2: wrong usage or settings.`,
		Example: `  amble archive manifest
  amble archive manifest news-20261120 > news-20261120.sha256`,
		Args: console.AtMostOne("prefix"),
		RunE: func(command *cobra.Command, prefixes []string) error {
			c, dir, err := p.Open()
			if err != nil {
				return err
			}
			out := bufio.NewWriter(command.OutOrStdout())
			err = manifest(command.Context(), c, dir, strings.Join(prefixes, ""), out)
			if err = errors.Join(err, out.Flush()); err != nil {
				return console.Exit(console.ExitProblem, err)
			}
			return nil
		},
	}
	return command
}

// manifest prints the digests of the files whose names begin with a prefix.
func manifest(ctx context.Context, c *warcfiles.Collection, dir, prefix string, out io.Writer) error {
	files, err := c.Files()
	if err != nil {
		return err
	}
	var names []string
	for _, f := range files {
		if f.Open || !strings.HasPrefix(f.Name, prefix) {
			continue
		}
		names = append(names, f.Name)
		if index := warcfiles.IndexName(f); index != "" {
			names = append(names, index)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("no complete file in %s begins with %q: amble archive ls lists the files", dir, prefix)
	}
	slices.Sort(names)
	for _, name := range names {
		sum, err := digestOf(ctx, filepath.Join(dir, name))
		if err == nil {
			_, err = fmt.Fprintf(out, "%s  %s\n", strings.TrimPrefix(sum.String(), "sha256:"), name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func digestOf(ctx context.Context, path string) (d digest.Digest, err error) {
	f, err := os.Open(path)
	if err != nil {
		return d, err
	}
	defer f.Close()
	h, part := digest.NewHash(), make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := f.Read(part)
		h.Write(part[:n])
		if err == io.EOF {
			return digest.Sum(h), nil
		}
		if err != nil {
			return d, err
		}
	}
	return d, ctx.Err()
}
