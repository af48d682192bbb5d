//go:build !core

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// archivedPage reads a page that is stored, or is in a WARC file. It is not taken if from is neither.
func archivedPage(f *extractFlags, command *cobra.Command, settings *settingsFlags, from string) (
	s *pageSource, took bool, err error) {
	_, isWARC := warc.Base(from)
	switch {
	case f.record != "" && !isWARC:
		err = console.Usagef("--url is for a WARC file, whose name ends in .warc.gz or .warc.zst")
	case isWebURL(from) && f.base != "":
		err = console.Usagef("--base is for a file; a stored page has its own URL")
	case isWebURL(from):
		s, err = storedPage(command, settings, from, f.most)
	case isWARC:
		s, err = f.warcPage(from)
	default:
		return nil, false, nil
	}
	return s, true, err
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
		return warcfiles.Responses(file, u.String(), func(response io.Reader, cut bool) error {
			s = &pageSource{url: u, most: f.most}
			return s.readResponse(response, cut)
		})
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

// storedPage reads the newest response that the crawl has stored for a URL.
func storedPage(command *cobra.Command, settings *settingsFlags, text string, most int64) (*pageSource, error) {
	u, err := parsePageURL(text)
	if err != nil {
		return nil, err
	}
	c, dir, err := archiveProgram(settings).Open()
	if err != nil {
		return nil, noRequest(u, err)
	}
	entry, err := c.Find(command.Context(), u.String(), time.Time{})
	if errors.Is(err, warcfiles.ErrNoCapture) {
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
