package archive

import "time"

// The names of the formats of this package.
const (
	FormatJSONL = "jsonl" // a line for each page
	FormatLinks = "links" // a line for each link
	FormatText  = "text"  // a line for each page with its main text
	FormatNone  = "none"  // nothing is written
)

// Pages returns the format of pages as JSON lines.
func Pages() []Format {
	return []Format{Lines{Format: FormatJSONL, Prefix: "pages-", Extension: ".jsonl",
		Encode: func(v *Visit) ([]byte, error) { return v.Page.Encode() }}}
}

// References returns the formats of what pages refer to and say, as JSON lines: links and texts.
func References() []Format {
	return []Format{
		Lines{Format: FormatLinks, Prefix: "links-", Extension: ".jsonl", Uses: Needs{Links: true, LinkTexts: true},
			Encode: func(v *Visit) ([]byte, error) { return encodeLinks(v.Page.URL, v.Links) }},
		Lines{Format: FormatText, Prefix: "text-", Extension: ".jsonl", Uses: Needs{Text: true},
			Encode: func(v *Visit) ([]byte, error) { return encodeText(v.Page.URL, v.Page.FetchedAt, v.Text) }},
	}
}

// Link is one reference of a page, for FormatLinks.
type Link struct {
	To   string // the URL it leads to
	Text string // the text of the link
	Rel  string // the rel attribute
}

type linkLine struct {
	Version int    `json:"version"`
	From    string `json:"from"`
	To      string `json:"to"`
	Text    string `json:"text,omitzero"`
	Rel     string `json:"rel,omitzero"`
}

// encodeLinks returns a line for each link of a page.
func encodeLinks(from string, links []Link) (lines []byte, err error) {
	for i := range links {
		l := &links[i]
		if lines, err = appendLine(lines, linkLine{Version, from, l.To, clip(l.Text), clip(l.Rel)}); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// Text is the text of a page, for FormatText.
type Text struct {
	Title    string
	Language string
	Text     string
}

type textLine struct {
	Version   int    `json:"version"`
	URL       string `json:"url"`
	FetchedAt string `json:"fetched_at"`
	Title     string `json:"title,omitzero"`
	Language  string `json:"language,omitzero"`
	Text      string `json:"text"`
}

// encodeText returns the line of a text; nil: there is no text.
func encodeText(url string, at time.Time, t *Text) ([]byte, error) {
	if t == nil {
		return nil, nil
	}
	return appendLine(nil, textLine{Version, url, formatTime(at), clip(t.Title), clip(t.Language), t.Text})
}
