package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/web/weburl"
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
	for _, m := range modules() {
		if m.page == nil {
			continue
		}
		if s, took, err := m.page(f, command, settings, from); took {
			return s, err
		}
	}
	if isWebURL(from) || f.record != "" {
		return nil, console.Usagef("this program has no stored pages (build tag core): name a file of a page")
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
