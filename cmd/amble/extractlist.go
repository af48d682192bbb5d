package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/extract"
)

// extractedList is the JSON of amble extract for a sitemap or feed.
type extractedList struct {
	URL       string          `json:"url"`
	Kind      string          `json:"kind"`
	Title     string          `json:"title,omitzero"`
	Robots    []string        `json:"robots,omitempty"`
	NoFollow  bool            `json:"nofollow,omitzero"`
	Extracted string          `json:"extracted,omitzero"`
	Links     []extractedItem `json:"links"`
	Refused   int             `json:"refused"`
}

// extractedItem is a URL of a sitemap or feed.
type extractedItem struct {
	To        string     `json:"to"`
	Kind      string     `json:"kind"` // page, sitemap, alternate, media or next
	Modified  *time.Time `json:"modified,omitempty"`
	Frequency string     `json:"frequency,omitzero"`
	Priority  float64    `json:"priority"`
}

// list prints what a crawl takes from a sitemap or feed.
func (f *extractFlags) list(command *cobra.Command, c *config.Config, source *pageSource, kind extract.ListKind) error {
	s := c.SitemapOptions()
	off := ""
	switch {
	case kind.IsFeed() && !s.Feeds:
		off = "sitemaps.feeds"
	case !kind.IsFeed() && !s.Follow:
		off = "sitemaps.follow"
	}
	if off != "" {
		return exit(exitProblem, fmt.Errorf("%s is of the kind %s, which a crawl with these settings does not read: "+
			"%s is false", source.url, kind, off))
	}
	directives := extract.HeaderDirectives(source.header, []string{c.Robots.ProductToken})
	e := extractedList{
		URL: source.url.String(), Kind: kind.String(), Robots: directives.Seen, NoFollow: directives.NoFollow,
		Links: []extractedItem{},
	}
	list, err := extract.ReadList(bytes.NewReader(source.body), kind, source.header.Get("Content-Type"), source.url,
		s.Lists, func(item extract.Item) error {
			x := extractedItem{
				To: item.URL.String(), Kind: item.Role.String(), Frequency: item.Frequency.String(),
				Priority: item.Priority,
			}
			if !item.Modified.IsZero() {
				modified := item.Modified.UTC()
				x.Modified = &modified
			}
			e.Links = append(e.Links, x)
			return nil
		})
	if err != nil {
		return exit(exitProblem, err)
	}
	e.Title, e.Refused = list.Title, list.Refused
	if list.Truncated || source.longer {
		e.Extracted = archive.ExtractedPart
	}
	if f.asJSON {
		return printJSON(command, &e)
	}
	return e.print(command.OutOrStdout())
}

// print prints a list as text.
func (e *extractedList) print(w io.Writer) error {
	s := &story{}
	s.line("URL", "%s", e.URL)
	s.line("kind", "%s", e.Kind)
	s.text("title", e.Title)
	s.text("robots", strings.Join(e.Robots, ", "))
	s.text("extracted", e.Extracted)
	s.line("links", "%s, %s refused", plural(len(e.Links), "link"), plural(e.Refused, "reference"))
	for i := range e.Links {
		l := &e.Links[i]
		s.WriteString("  " + pad(l.Kind, 10) + "  " + l.To)
		if l.Modified != nil {
			s.WriteString("  modified " + l.Modified.Format(time.RFC3339))
		}
		if l.Frequency != "" {
			s.WriteString("  " + l.Frequency)
		}
		if l.Priority != 0.5 { // what sitemaps.org defines for a page that has none
			fmt.Fprintf(s, "  priority %g", l.Priority)
		}
		s.WriteString("\n")
	}
	_, err := io.WriteString(w, s.String())
	return err
}
