package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/weburl"
)

// archiveGetFlags are those of amble archive get.
type archiveGetFlags struct {
	at           string
	headers, raw bool
}

func newArchiveGetCommand(settings *settingsFlags) *cobra.Command {
	f := archiveGetFlags{}
	command := &cobra.Command{
		Use:   "get URL",
		Short: "Print a stored page",
		Long: `Print the newest answer that is stored for a URL, or with --at the one that was the newest then. The body is printed as a browser gets it, without
chunks and content encoding. Where an answer was not stored because an earlier one had the same content, or because the server said that
nothing had changed, the content is that of the earlier one.

This reads WARC files: output.format has to have warc in it. A crawl may be running.

Exit code 0: done. 1: no answer is stored for the URL, or it cannot be read. 2: wrong usage or settings.`,
		Example: `  amble archive get https://example.com/
  amble archive get https://example.com/ --at 2026-11-20
  amble archive get https://example.com/logo.png > logo.png
  amble archive get https://example.com/ --headers`,
		Args: exactlyOne("URL"),
		RunE: func(command *cobra.Command, urls []string) error {
			u, err := weburl.Parse(urls[0])
			if err != nil {
				return usagef("%w", err)
			}
			at, err := parseMoment(f.at)
			if err != nil {
				return err
			}
			c, dir, err := openCollection(settings)
			if err != nil {
				return err
			}
			return f.get(command, c, dir, u.String(), at)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.at, "at", "", "as it was at this `time`: 2026-11-20, 2026-11-20T12:14:15Z or 20261120121415")
	flags.BoolVar(&f.headers, "headers", false, "print the header of the answer before the body")
	flags.BoolVar(&f.raw, "raw", false, "print the body as it is stored, packed if it came so")
	return command
}

// exactlyOne is for commands that take one argument.
func exactlyOne(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, given []string) error {
		if len(given) != 1 {
			return usagef("%q takes one %s, and %d were given", command.CommandPath(), what, len(given))
		}
		return nil
	}
}

// parseMoment reads a time in the forms that people and archives write; a day is meant to its end. Empty: the zero time.
func parseMoment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.Add(24*time.Hour - time.Second), nil
	}
	for _, layout := range []string{time.RFC3339, "20060102150405"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef("%q is not a time, such as 2026-11-20, 2026-11-20T12:14:15Z or 20261120121415", text)
}

func (f *archiveGetFlags) get(command *cobra.Command, c *archive.Collection, dir, url string, at time.Time) error {
	ctx := command.Context()
	e, err := c.Find(ctx, url, at)
	if errors.Is(err, archive.ErrNoCapture) {
		return exit(exitProblem, notStored(ctx, c, dir, url, at))
	}
	if err != nil {
		return exit(exitProblem, err)
	}
	s, err := c.Open(ctx, e)
	if err != nil {
		return exit(exitProblem, err)
	}
	err = f.print(rawOutput(command.OutOrStdout()), s)
	if err = errors.Join(err, s.Close()); err != nil {
		return exit(exitProblem, fmt.Errorf("%s: %w", url, err))
	}
	switch s.Truncated {
	case "":
	case archive.TooLong:
		command.PrintErrln("amble: the server had more of it; this is what was stored (fetch.max_body)")
	default:
		command.PrintErrf("amble: the answer broke off; this is what came of it (%s)\n", printable(string(s.Truncated)))
	}
	return nil
}

// notStored says why there is nothing to print, and what there is.
func notStored(ctx context.Context, c *archive.Collection, dir, url string, at time.Time) error {
	if newest, err := c.Find(ctx, url, time.Time{}); err == nil {
		return fmt.Errorf("%s is not stored as of %s; there are later answers, the newest of %s", url, at.Format(time.RFC3339), newest.Time.Format(time.RFC3339))
	}
	return fmt.Errorf("%s is not stored in the WARC files of %s: amble archive ls lists what is", url, dir)
}

func (f *archiveGetFlags) print(w io.Writer, s *archive.Stored) error {
	out := bufio.NewWriterSize(w, 64<<10)
	if f.headers {
		out.Write(s.Head) // errors come with Flush
	}
	body, release := s.Body, func() {}
	if !f.raw {
		var err error
		if body, release, err = plainBody(s); err != nil {
			return err
		}
	}
	defer release()
	_, err := io.Copy(out, body)
	if s.Truncated != "" && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the end of what was stored
	}
	return errors.Join(err, out.Flush())
}

// plainBody is the body of an answer without chunks and content encodings.
func plainBody(s *archive.Stored) (io.Reader, func(), error) {
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(s.BodyHead), s.Body)), nil)
	if err != nil {
		return nil, nil, err
	}
	return fetch.Decode(resp.Header, resp.Body)
}
