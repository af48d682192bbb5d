package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/warc"
	"github.com/amble-crawler/amble/internal/weburl"
)

// pageSource is a page to extract from.
type pageSource struct {
	url    weburl.URL
	header http.Header
	body   []byte
	most   int64 // bytes of body
	longer bool  // the document is longer
}

// find reads the page that the argument names.
func (f *extractFlags) find(command *cobra.Command, settings *settingsFlags, from string) (*pageSource, error) {
	_, isWARC := warc.Base(from)
	switch {
	case f.record != "" && !isWARC:
		return nil, console.Usagef("--url is for a WARC file, whose name ends in .warc.gz or .warc.zst")
	case isWebURL(from) && f.base != "":
		return nil, console.Usagef("--base is for a file; a stored page has its own URL")
	case isWebURL(from):
		return storedPage(command, settings, from, f.most)
	case isWARC:
		return f.warcPage(from)
	}
	return f.filePage(command.InOrStdin(), from)
}

// parsePageURL parses a URL of the command line.
func parsePageURL(text string) (weburl.URL, error) {
	u, err := weburl.Parse(text)
	if err != nil {
		return u, console.Usagef("%w", err)
	}
	return u, nil
}

// fill reads the body.
func (s *pageSource) fill(body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, s.most+1))
	s.body = text
	s.cut(s.most)
	return err
}

// cut leaves at most n bytes of the body.
func (s *pageSource) cut(n int64) {
	if int64(len(s.body)) > n {
		s.body, s.longer = s.body[:n], true
	}
}

// filePage reads a page from a file, or from standard input.
func (f *extractFlags) filePage(stdin io.Reader, path string) (*pageSource, error) {
	if f.base == "" {
		return nil,
			console.Usagef("%s has no URL to resolve its links against: set it with --base https://example.com/page",
				path)
	}
	u, err := parsePageURL(f.base)
	if err != nil {
		return nil, err
	}
	s := &pageSource{url: u, most: f.most, header: http.Header{"Content-Type": {f.contentType}}}
	if path == "-" {
		err = s.fill(stdin)
	} else {
		err = withFile(path, s.fill)
	}
	if err != nil {
		return nil, console.Exit(console.ExitProblem, fmt.Errorf("%s cannot be read: %w", path, err))
	}
	return s, nil
}

func withFile(path string, read func(io.Reader) error) error {
	file, err := os.Open(path)
	if err == nil {
		defer file.Close()
		err = read(file)
	}
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// warcPage reads the last response that a WARC file has for a URL.
func (f *extractFlags) warcPage(path string) (*pageSource, error) {
	if f.record == "" {
		return nil, console.Usagef("%s holds many pages: select one with --url https://example.com/page", path)
	}
	u, err := parsePageURL(f.record)
	if err != nil {
		return nil, err
	}
	var s *pageSource
	err = withFile(path, func(file io.Reader) error {
		reader := warc.NewReader(file)
		for {
			record, err := reader.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if record.Type() != warc.TypeResponse || record.Header.Get(warc.FieldTargetURI) != u.String() {
				continue
			}
			s = &pageSource{url: u, most: f.most}
			if err := s.readResponse(record.Block, record.Header.Get(warc.FieldTruncated) != ""); err != nil {
				return err
			}
		}
	})
	switch {
	case err != nil:
		return nil, console.Exit(console.ExitProblem, fmt.Errorf("%s cannot be read: %w", path, err))
	case s == nil:
		return nil,
			console.Exit(console.ExitProblem, fmt.Errorf("%s has no response for %s that holds a page", path, u))
	}
	return s, nil
}

// readResponse reads an HTTP response; cut says that its end is missing.
func (s *pageSource) readResponse(answer io.Reader, cut bool) error {
	resp, err := http.ReadResponse(bufio.NewReader(answer), nil)
	if err != nil {
		return err
	}
	body, release, err := fetch.Decode(resp.Header, resp.Body)
	if err != nil {
		return err
	}
	defer release()
	s.header = resp.Header
	if err = s.fill(body); cut && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the end of what was stored
	}
	s.longer = s.longer || cut
	return err
}

// storedPage reads the newest response that the crawl has stored for a URL.
func storedPage(command *cobra.Command, settings *settingsFlags, text string, most int64) (*pageSource, error) {
	u, err := parsePageURL(text)
	if err != nil {
		return nil, err
	}
	c, dir, err := openCollection(settings)
	if err != nil {
		return nil, noRequest(u, err)
	}
	entry, err := c.Find(command.Context(), u.String(), time.Time{})
	if errors.Is(err, archive.ErrNoCapture) {
		return nil, noRequest(u, fmt.Errorf("it is not stored in the WARC files of %s", dir))
	}
	if err != nil {
		return nil, console.Exit(console.ExitProblem, err)
	}
	stored, err := c.Open(command.Context(), entry)
	if err != nil {
		return nil, console.Exit(console.ExitProblem, err)
	}
	defer stored.Close()
	s := &pageSource{url: u, most: most}
	answer := io.MultiReader(bytes.NewReader(stored.BodyHead), stored.Body)
	if err := s.readResponse(answer, stored.Truncated != ""); err != nil {
		return nil, console.Exit(console.ExitProblem, fmt.Errorf("%s: %w", u, err))
	}
	return s, nil
}

// noRequest explains why a page is not available, and what to do.
func noRequest(u weburl.URL, err error) error {
	const advice = "amble extract makes no request: crawl the page with output.format: [warc], or name a file"
	return console.Exit(console.ExitProblem, fmt.Errorf("%s: %w; %s", u, err, advice))
}
