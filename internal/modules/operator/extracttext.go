//go:build !core

package operator

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/extract"
)

// extractedPage is the JSON of amble extract.
type extractedPage struct {
	URL              string          `json:"url"`
	Base             string          `json:"base"`
	Title            string          `json:"title,omitzero"`
	Language         string          `json:"language,omitzero"`
	Canonical        string          `json:"canonical,omitzero"`
	Robots           []string        `json:"robots,omitempty"`
	NoIndex          bool            `json:"noindex,omitzero"`
	NoFollow         bool            `json:"nofollow,omitzero"`
	UnavailableAfter *time.Time      `json:"unavailable_after,omitempty"`
	Preferences      []string        `json:"preferences,omitempty"`
	Licenses         []string        `json:"licenses,omitempty"`
	Extracted        string          `json:"extracted,omitzero"`
	Fields           map[string]any  `json:"fields,omitempty"`
	Links            []extractedLink `json:"links"`
	Refused          int             `json:"refused"`
	Text             string          `json:"text,omitzero"`
	Detail           string          `json:"detail,omitzero"`
	Rule             int             `json:"rule,omitzero"`
	Reason           string          `json:"reason,omitzero"`
	Bounds           []string        `json:"bounds,omitempty"`
}

type extractedLink struct {
	To       string `json:"to"`
	Kind     string `json:"kind"`
	NoFollow bool   `json:"nofollow,omitzero"`
	Text     string `json:"text,omitzero"`
	Rel      string `json:"rel,omitzero"`
}

// extractedHow is the value of the output field extracted.
func extractedHow(page *extract.Page) string {
	switch {
	case page.Cut != 0:
		return archive.ExtractedPart
	case page.Flat:
		return archive.ExtractedFlat
	}
	return ""
}

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

// print prints a list as text.
func (e *extractedList) print(w io.Writer) error {
	s := &story{}
	s.Line("URL", "%s", e.URL)
	s.Line("kind", "%s", e.Kind)
	s.text("title", e.Title)
	s.text("robots", strings.Join(e.Robots, ", "))
	s.text("extracted", e.Extracted)
	s.Line("links", "%s, %s refused", console.Plural(len(e.Links), "link"), console.Plural(e.Refused, "reference"))
	for i := range e.Links {
		l := &e.Links[i]
		s.WriteString("  " + console.Pad(l.Kind, 10) + "  " + l.To)
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
