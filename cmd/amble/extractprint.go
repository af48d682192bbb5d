package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/weburl"
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
	Extracted        string          `json:"extracted,omitzero"`
	Fields           map[string]any  `json:"fields,omitempty"`
	Links            []extractedLink `json:"links"`
	Refused          int             `json:"refused"`
	Text             string          `json:"text,omitzero"`
	Detail           string          `json:"detail,omitzero"`
	Rule             int             `json:"rule,omitzero"`
	Reason           string          `json:"reason,omitzero"`
}

type extractedLink struct {
	To       string `json:"to"`
	Kind     string `json:"kind"`
	NoFollow bool   `json:"nofollow,omitzero"`
	Text     string `json:"text,omitzero"`
	Rel      string `json:"rel,omitzero"`
}

// extractedHow is the field extracted of the output of a crawl.
func extractedHow(page *extract.Page) string {
	switch {
	case page.Truncated:
		return archive.ExtractedPart
	case page.Flat:
		return archive.ExtractedFlat
	}
	return ""
}

// describe makes the JSON of a page.
func (f *extractFlags) describe(u weburl.URL, page *extract.Page) *extractedPage {
	e := &extractedPage{
		URL: u.String(), Base: page.Base.String(), Title: page.Title, Language: page.Language,
		Canonical: page.Canonical.String(), Robots: page.Robots.Seen, NoIndex: page.Robots.NoIndex,
		NoFollow: page.Robots.NoFollow, Preferences: page.Robots.Preferences, Extracted: extractedHow(page),
		Fields: page.Fields, Links: []extractedLink{}, Refused: page.Refused, Text: page.Text,
	}
	if at := page.Robots.UnavailableAfter; !at.IsZero() {
		e.UnavailableAfter = &at
	}
	for i := range page.Links {
		l := &page.Links[i]
		e.Links = append(e.Links, extractedLink{l.URL.String(), l.Kind.String(), l.NoFollow, l.Text, l.Rel})
	}
	if f.explain {
		e.Detail, e.Rule, e.Reason = detail(page), page.Rule, f.reason(page)
	}
	return e
}

// printJSON prints an object on a line.
func printJSON(command *cobra.Command, object any) error {
	encoder := json.NewEncoder(command.OutOrStdout())
	encoder.SetEscapeHTML(false)
	return encoder.Encode(object)
}

// print tells people of a page.
func (f *extractFlags) print(w io.Writer, u weburl.URL, page *extract.Page) error {
	s := &story{}
	s.line("URL", "%s", u)
	if page.Base != u {
		s.line("base", "%s", page.Base)
	}
	s.text("title", page.Title)
	s.text("language", page.Language)
	s.text("canonical", page.Canonical.String())
	s.text("robots", strings.Join(page.Robots.Seen, ", "))
	if at := page.Robots.UnavailableAfter; !at.IsZero() {
		s.line("unavailable", "after %s", at.UTC().Format(time.RFC3339))
	}
	s.text("preferences", strings.Join(page.Robots.Preferences, ", "))
	if how := extractedHow(page); how != "" {
		s.line("extracted", "%s", how)
	}
	if f.explain {
		s.line("detail", "%s: %s", detail(page), f.reason(page))
	}
	s.fields(page)
	s.links(page)
	if page.Text != "" {
		s.WriteString("\n")
		for line := range strings.SplitSeq(page.Text, "\n") {
			s.WriteString(printable(line) + "\n")
		}
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// fields are the values that a rule takes.
func (s *story) fields(page *extract.Page) {
	for _, name := range slices.Sorted(maps.Keys(page.Fields)) {
		values, isList := page.Fields[name].([]string)
		if !isList {
			values = []string{fmt.Sprint(page.Fields[name])}
		}
		for i, value := range values {
			label := ""
			if i == 0 {
				label = "field"
			}
			s.line(label, "%s: %s", name, printable(value))
		}
	}
	switch {
	case page.Rule > 0 && page.Truncated:
		s.line("", "only a part of the document was read: fields may be missing")
	case page.Rule > 0 && page.Flat:
		s.line("", "elements are nested too deep: fields may be missing")
	}
}

// links are the links of a page, one a line.
func (s *story) links(page *extract.Page) {
	s.line("links", "%s, %s refused", plural(len(page.Links), "link"), plural(page.Refused, "reference"))
	for i := range page.Links {
		l := &page.Links[i]
		mark := ""
		if l.NoFollow {
			mark = "  nofollow"
		}
		if l.Text != "" {
			mark += "  " + printable(l.Text)
		}
		s.WriteString("  " + pad(l.Kind.String(), 10) + "  " + l.URL.String() + mark + "\n")
	}
}
