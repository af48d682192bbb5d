//go:build !core

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

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/modules/operator"
	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// archivedPage reads a page that is stored, or is in a WARC file. It is not taken if from is neither.
func archivedPage(ctx context.Context, settings *access.Settings, name operator.PageName) (
	s *operator.PageSource, took bool, err error) {
	from := name.From
	_, isWARC := warc.Base(from)
	switch {
	case name.Record != "" && !isWARC:
		err = console.Usagef("--url is for a WARC file, whose name ends in .warc.gz or .warc.zst")
	case operator.IsWebURL(from) && name.Base != "":
		err = console.Usagef("--base is for a file; a stored page has its own URL")
	case operator.IsWebURL(from):
		s, err = storedPage(ctx, settings, from, name.Most)
	case isWARC:
		s, err = warcPage(name)
	default:
		return nil, false, nil
	}
	return s, true, err
}

// warcPage reads the last response that a WARC file has for a URL.
func warcPage(name operator.PageName) (*operator.PageSource, error) {
	path := name.From
	if name.Record == "" {
		return nil, console.Usagef("%s holds many pages: select one with --url https://example.com/page", path)
	}
	u, err := operator.ParsePageURL(name.Record)
	if err != nil {
		return nil, err
	}
	var s *operator.PageSource
	err = operator.WithFile(path, func(file io.Reader) error {
		return warcfiles.Responses(file, u.String(), func(response io.Reader, cut bool) error {
			s = &operator.PageSource{URL: u, Most: name.Most}
			return readResponse(s, response, cut)
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
func storedPage(ctx context.Context, settings *access.Settings, text string, most int64) (
	*operator.PageSource, error) {
	u, err := operator.ParsePageURL(text)
	if err != nil {
		return nil, err
	}
	c, dir, err := archiveProgram(settings).Open()
	if err != nil {
		return nil, noRequest(u, err)
	}
	entry, err := c.Find(ctx, u.String(), time.Time{})
	if errors.Is(err, warcfiles.ErrNoCapture) {
		return nil, noRequest(u, fmt.Errorf("it is not stored in the WARC files of %s", dir))
	}
	if err != nil {
		return nil, console.Exit(console.ExitProblem, err)
	}
	stored, err := c.Open(ctx, entry)
	if err != nil {
		return nil, console.Exit(console.ExitProblem, err)
	}
	defer stored.Close()
	s := &operator.PageSource{URL: u, Most: most}
	answer := io.MultiReader(bytes.NewReader(stored.BodyHead), stored.Body)
	if err := readResponse(s, answer, stored.Truncated != ""); err != nil {
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
func readResponse(s *operator.PageSource, answer io.Reader, cut bool) error {
	resp, err := http.ReadResponse(bufio.NewReader(answer), nil)
	if err != nil {
		return err
	}
	body, release, err := fetch.Decode(resp.Header, resp.Body)
	if err != nil {
		return err
	}
	defer release()
	s.Header = resp.Header
	if err = s.Fill(body); cut && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the end of what was stored
	}
	s.Longer = s.Longer || cut
	return err
}
