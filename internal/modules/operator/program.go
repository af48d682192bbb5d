//go:build !core

// Package operator has the commands by which an operator looks at a crawl and changes it, while it runs or not, and
// those that show what a crawl would make of a page or a robots.txt.
package operator

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/seeds"
)

// Program is what the commands have of the program.
type Program struct {
	*access.Settings
	Parts
}

// Parts are what other modules add to the commands.
type Parts struct {
	// Status has rows of the status of a running crawl, for people.
	Status []StatusRows
	// OfURL adds to what is told of a URL: a value of the JSON object, nil for nothing, and lines for people.
	OfURL func(context.Context, *access.Crawl, access.Inspector, *inspect.URLStory) (any, [][2]string, error)
	// Formats are of the lists that amble import reads and amble export writes.
	Formats []ListFormat
	// Page reads the page that the argument of amble extract names, unless that is a file of one page: took is false.
	Page func(context.Context, *access.Settings, PageName) (p *PageSource, took bool, err error)
}

// StatusRows returns rows of the status of the crawl of some settings.
type StatusRows func(context.Context, *config.Config) ([][]string, error)

// ListFormat is a format of lists of URLs.
type ListFormat struct {
	Name  string // the value of --format
	Read  func() LineReader
	Write func(io.Writer) func(*inspect.URL) error
}

// LineReader reads the lines of one import.
type LineReader interface {
	Parse(line []byte) (seeds.Item, error) // as urllist.Reader.Objects
	Imported() *crawl.Imported             // what the last line says, once; nil: it was a plain URL
}

// Commands returns the makers of the commands.
func Commands() []func(*Program) *cobra.Command {
	return []func(*Program) *cobra.Command{
		newStatusCommand, newHostsCommand, newURLsCommand, newImportCommand, newRetryCommand,
		newDropCommand, newControlCommand, newOptOutCommand, newSeedCommand, newExportCommand, newRobotsCommand,
		newExtractCommand, newDBCommand, newDataCommand,
	}
}

// formats returns the values of --format.
func (p *Program) formats() (names []string) {
	for _, f := range p.Formats {
		names = append(names, f.Name)
	}
	return names
}

// formatOf returns the format of a value of --format.
func (p *Program) formatOf(name string) (f ListFormat, known bool) {
	for _, f := range p.Formats {
		if f.Name == name {
			return f, true
		}
	}
	return f, false
}

// checkFormat returns an error for an unknown value of --format.
func (p *Program) checkFormat(name string) error {
	if _, known := p.formatOf(name); name != "" && !known {
		return console.Usagef("--format is %q; it may be %s, or left out", name, either(p.formats()))
	}
	return nil
}

// either joins names for people.
func either(names []string) string { return strings.Join(names, " or ") }

// moreOf has other modules add to what is known of a URL.
func (p *Program) moreOf(ctx context.Context, i access.Inspector, s *inspect.URLStory) (lines [][2]string, err error) {
	if p.OfURL == nil || !s.Known {
		return nil, nil
	}
	c, err := p.Crawl()
	if err == nil {
		s.Requisites, lines, err = p.OfURL(ctx, c, i, s)
	}
	return lines, err
}

// moreStatus returns the rows of other modules for a running crawl.
func (p *Program) moreStatus(ctx context.Context, c *config.Config, s crawl.Status) (rows [][]string, err error) {
	if s.State == "not running" {
		return nil, nil
	}
	for _, more := range p.Status {
		lines, failed := more(ctx, c)
		rows, err = append(rows, lines...), errors.Join(err, failed)
	}
	return rows, err
}
