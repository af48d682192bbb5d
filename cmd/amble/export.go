package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/inspect"
)

func newExportCommand(settings *settingsFlags) *cobra.Command {
	var state, file, format string
	command := &cobra.Command{
		Use:   "export",
		Short: "Write every known URL as a JSON line",
		Long: `Write one JSON object a line for every known URL, host by host in the order of discovery.
docs/OUTPUT.md describes the fields; amble import reads such lines. A running crawl serves the export over its
API and continues, so that the first lines may be older than the last ones. Otherwise the database is opened
read-only.

With --format urlfrontier the lines are those that the client of URLFrontier reads with PutURLs: URLs that have
not been fetched yet are discovered, all others known.

With -o the file gets its name when it is complete, and is compressed as the name says: .gz or .zst.

Exit code 0: done. 1: there is no database, it cannot be used, or the file cannot be written. 2: wrong usage
or settings. 3: another process has the database and no API answers.`,
		Example: `  amble export -o urls.jsonl.zst
  amble export --state failed | jq -r .url
  amble export --format urlfrontier -o dump.jsonl.gz`,
		Args: func(command *cobra.Command, args []string) error {
			return errors.Join(console.NoArguments(command, args), checkFormat(format))
		},
		RunE: func(command *cobra.Command, _ []string) error {
			q := inspect.URLQuery{}
			if err := q.Filter(state, ""); err != nil {
				return console.Usagef("%w", err)
			}
			return withInspector(command.Context(), settings, func(i inspector) error {
				if file == "" || file == "-" {
					_, err := exportTo(command, i, q, format, command.OutOrStdout())
					return err
				}
				return exportFile(command, i, q, format, file)
			})
		},
	}
	command.Flags().StringVar(&state, "state", "", "only URLs in this `state`")
	command.Flags().StringVarP(&file, "output", "o", "", "write to this `file`; default: standard output")
	command.Flags().StringVar(&format, "format", "", "the `format` of the lines: "+either(formats())+
		"; default: amble's own")
	offer(command, "state", stateNames())
	offer(command, "format", formats())
	return command
}

func exportFile(command *cobra.Command, i inspector, q inspect.URLQuery, format, name string) error {
	f, err := createOutFile(name)
	if err != nil {
		return console.Exit(console.ExitProblem, fmt.Errorf("export: %w", err))
	}
	n, err := exportTo(command, i, q, format, f)
	if err = f.finish(err); err != nil {
		return console.Exit(console.ExitProblem, fmt.Errorf("export to %s: %w", name, err))
	}
	_, err = fmt.Fprintf(command.ErrOrStderr(), "%s: %s\n", name, console.Plural(n, "URL"))
	return err
}

func exportTo(
	command *cobra.Command, i inspector, q inspect.URLQuery, format string, w io.Writer,
) (n int, err error) {
	out := bufio.NewWriterSize(w, 1<<16)
	lines := inspect.NewLines(out)
	write := func(u *inspect.URL) error { return lines.Write(u) }
	if f, known := formatOf(format); known {
		write = f.write(out)
	}
	_, err = i.URLs(command.Context(), q, "", func(u *inspect.URL) error {
		n++
		return write(u)
	})
	return n, errors.Join(err, out.Flush())
}

// outFile is a file that gets its name when it is complete. It is compressed as its name says: .gz,
// .zst.
type outFile struct {
	io.Writer
	name  string
	file  *os.File
	parts []io.Closer // the compressors
	plain *bufio.Writer
}

func createOutFile(name string) (*outFile, error) {
	file, err := os.OpenFile(name+".partial", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	f := &outFile{name: name, file: file, plain: bufio.NewWriterSize(file, 1<<16)}
	f.Writer = f.plain
	switch {
	case strings.HasSuffix(name, ".gz"):
		packer := gzip.NewWriter(f.plain)
		f.Writer, f.parts = packer, []io.Closer{packer}
	case strings.HasSuffix(name, ".zst"), strings.HasSuffix(name, ".zstd"):
		packer, err := zstd.NewWriter(f.plain, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, errors.Join(err, f.drop())
		}
		f.Writer, f.parts = packer, []io.Closer{packer}
	}
	return f, nil
}

// finish completes the file and gives it its name. After an error, its own or err, it removes the
// file.
func (f *outFile) finish(err error) error {
	if err != nil {
		return errors.Join(err, f.drop())
	}
	for _, p := range f.parts {
		err = errors.Join(err, p.Close())
	}
	if err = errors.Join(err, f.plain.Flush(), f.file.Sync()); err != nil {
		return errors.Join(err, f.drop())
	}
	if err := f.file.Close(); err != nil {
		return errors.Join(err, os.Remove(f.file.Name()))
	}
	return os.Rename(f.file.Name(), f.name)
}

func (f *outFile) drop() error {
	return errors.Join(f.file.Close(), os.Remove(f.file.Name()))
}
