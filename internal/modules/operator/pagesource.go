//go:build !core

package operator

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

// PageName names a page to extract from, by the arguments of amble extract.
type PageName struct {
	From   string // a URL or a file
	Base   string // the URL of the file; empty: it is not given
	Record string // the URL of a record of the file; empty: it is not given
	Most   int64  // bytes of a document or list
}

// PageSource is a page to extract from.
type PageSource struct {
	URL    weburl.URL
	Header http.Header
	Body   []byte
	Most   int64 // bytes of Body
	Longer bool  // the document is longer
}

// find reads the page that the argument names.
func (f *extractFlags) find(command *cobra.Command, settings *Program, from string) (*PageSource, error) {
	if settings.Page != nil {
		name := PageName{From: from, Base: f.base, Record: f.record, Most: f.most}
		if s, took, err := settings.Page(command.Context(), settings.Settings, name); took {
			return s, err
		}
	}
	return f.filePage(command.InOrStdin(), from)
}

// ParsePageURL parses a URL of the command line.
func ParsePageURL(text string) (weburl.URL, error) {
	u, err := weburl.Parse(text)
	if err != nil {
		return u, console.Usagef("%w", err)
	}
	return u, nil
}

// Fill reads the body.
func (s *PageSource) Fill(body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, s.Most+1))
	s.Body = text
	s.cut(s.Most)
	return err
}

// cut leaves at most n bytes of the body.
func (s *PageSource) cut(n int64) {
	if int64(len(s.Body)) > n {
		s.Body, s.Longer = s.Body[:n], true
	}
}

// filePage reads a page from a file, or from standard input.
func (f *extractFlags) filePage(stdin io.Reader, path string) (*PageSource, error) {
	if f.base == "" {
		return nil,
			console.Usagef("%s has no URL to resolve its links against: set it with --base https://example.com/page",
				path)
	}
	u, err := ParsePageURL(f.base)
	if err != nil {
		return nil, err
	}
	s := &PageSource{URL: u, Most: f.most, Header: http.Header{"Content-Type": {f.contentType}}}
	if path == "-" {
		err = s.Fill(stdin)
	} else {
		err = WithFile(path, s.Fill)
	}
	if err != nil {
		return nil, console.Exit(console.ExitProblem, fmt.Errorf("%s cannot be read: %w", path, err))
	}
	return s, nil
}

// WithFile reads a file.
func WithFile(path string, read func(io.Reader) error) error {
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
