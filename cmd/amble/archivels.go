package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/warc"
)

func newArchiveListCommand(settings *settingsFlags) *cobra.Command {
	var lines bool
	command := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the files, or what is stored of a site",
		Long: `List the output files with their sizes, and how many answers each WARC file holds from when to when. With the beginning of a URL, list the
answers that are stored for the URLs that begin so, file by file. Without a scheme it stands for http and https.

Exit code 0: done. 1: there is no output, it cannot be read, or nothing is stored under the prefix. 2: wrong usage or settings.`,
		Example: `  amble archive ls
  amble archive ls https://example.com/docs/
  amble archive ls example.com/ --jsonl`,
		Args: atMostOne("prefix"),
		RunE: func(command *cobra.Command, prefixes []string) error {
			c, _, err := openCollection(settings)
			if err != nil {
				return err
			}
			out := bufio.NewWriter(command.OutOrStdout())
			if len(prefixes) == 1 {
				err = listCaptures(command, c, prefixes[0], out, lines)
			} else {
				err = listFiles(c, out, lines)
			}
			if err = errors.Join(err, out.Flush()); err != nil {
				return exit(exitProblem, err)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&lines, "jsonl", false, "print one JSON object a line")
	return command
}

// fileLine is a file as JSON.
type fileLine struct {
	Name     string    `json:"name"`
	Format   string    `json:"format"`
	Open     bool      `json:"open"`
	Size     int64     `json:"size"`
	Captures int       `json:"captures"`
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
}

func listFiles(c *archive.Collection, out io.Writer, lines bool) error {
	files, err := c.Files()
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(out)
	t := newTable(out, "FILE", "FORMAT", "SIZE", "ANSWERS", "FROM", "TO")
	for _, f := range files {
		n, err := c.Contents(f)
		if err != nil {
			return err
		}
		if lines {
			err = encoder.Encode(fileLine{f.Name, f.Format, f.Open, f.Size, n.Captures, n.First, n.Last})
		} else {
			err = t.row(fileCells(f, n)...)
		}
		if err != nil {
			return err
		}
	}
	if lines {
		return nil
	}
	return t.flush()
}

func fileCells(f archive.File, n archive.Contents) []string {
	name := f.Name
	if f.Open {
		name += " (being written)"
	}
	if f.Format != archive.FormatWARC {
		return []string{name, f.Format, size(uint64(f.Size)), "-", "-", "-"}
	}
	return []string{name, f.Format, size(uint64(f.Size)), grouped(n.Captures), moment(n.First), moment(n.Last)}
}

// moment writes a time of an answer.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// captureLine is an answer as JSON.
type captureLine struct {
	URL    string    `json:"url"`
	Time   time.Time `json:"time"`
	Status int       `json:"status"`
	Type   string    `json:"type"`
	Digest string    `json:"digest,omitzero"`
	File   string    `json:"file"`
	Offset int64     `json:"offset"`
	Length int64     `json:"length"`
}

func listCaptures(command *cobra.Command, c *archive.Collection, prefix string, out io.Writer, lines bool) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	t := newTable(out, "TIME", "STATUS", "TYPE", "STORED", "URL")
	found := 0
	err := c.Captures(command.Context(), prefix, func(e *warc.Entry) error {
		found++
		if lines {
			return encoder.Encode(captureLine{e.URL, e.Time, e.Status, e.Mime, e.Digest, e.Filename, e.Offset, e.Length})
		}
		return t.row(moment(e.Time), strconv.Itoa(e.Status), orDash(e.Mime), size(uint64(e.Length)), e.URL)
	})
	if err == nil && found == 0 {
		err = errors.New("nothing is stored under " + prefix + ": amble archive ls lists the files")
	}
	if err != nil || lines {
		return err
	}
	return t.flush()
}

// orDash stands in for a text that is not known.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
