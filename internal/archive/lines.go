package archive

import "time"

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

func encodeText(url string, at time.Time, t *Text) ([]byte, error) {
	return appendLine(nil, textLine{Version, url, formatTime(at), clip(t.Title), clip(t.Language), t.Text})
}
