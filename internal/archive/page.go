package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Version is the version of the JSON lines of all formats. A reader may rely on the names and meanings of one version;
// new names can appear within it.
const Version = 1

// maxText is the most bytes of a text that a stranger wrote (title, content type, language, error).
const maxText = 1024

// ErrPage is returned for a Page that no line can be made of.
var ErrPage = errors.New("archive: not a page")

// Page is one URL that came to a final state: what was fetched, or why nothing was. docs/OUTPUT.md gives
// the name of each field in the line.
type Page struct {
	URL         string
	Status      int           // of the answer; 0: there was none
	FetchedAt   time.Time     // start of the last request; zero: none was made
	FirstByte   time.Duration // from the start to the first byte of the answer
	Duration    time.Duration // from the start to the end of the body
	ContentType string        // as the server sent it
	Kind        string        // what is not a page: sitemap, sitemap index, text sitemap, rss, atom, json feed
	Bytes       int64         // of the decoded body that was kept
	Digest      string        // of the same bytes, as [warc.Digest] writes it
	Title       string
	Language    string
	Canonical   string   // the URL that the page says is its own
	Robots      []string // directives that the page gives to this crawler, in lower case
	NoIndex     bool     // it asks not to be indexed, or its time is over
	Preferences []string // what it says about its use for artificial intelligence and text mining, as name and value
	Depth       int      // links from a seed
	Via         string   // the URL it was found on; empty for a seed
	Outlinks    int      // different URLs the page links to
	Redirect    string   // the target, where the answer is a redirect
	Reason      string   // why it ended as it did, in one word, where the answer alone does not say
	Error       string   // what failed, for people
	Attempts    int      // requests made for it, this one included
	// UnavailableAfter is the time after which it is not to be shown; zero: it has none.
	UnavailableAfter time.Time
	Truncated        bool   // the body was longer than the limit, or the connection broke: only its beginning was read
	Extracted        string // how its links and text were taken, where not from the whole document: one of those below
	// Fields are the values that extract.rules take of it, by their names: a string or a []string each.
	Fields map[string]any
}

// How links and text were taken of a page.
const (
	ExtractedFlat = "flat" // elements that are nested too deep were read as if they were side by side
	ExtractedPart = "part" // a bound cut some off
)

// line is the JSON form of a Page.
type line struct {
	Version          int      `json:"version"`
	URL              string   `json:"url"`
	Status           int      `json:"status,omitzero"`
	FetchedAt        string   `json:"fetched_at,omitzero"`
	FirstByte        float64  `json:"first_byte_ms,omitzero"`
	Duration         float64  `json:"duration_ms,omitzero"`
	ContentType      string   `json:"content_type,omitzero"`
	Kind             string   `json:"kind,omitzero"`
	Bytes            int64    `json:"bytes"`
	Digest           string   `json:"digest,omitzero"`
	Title            string   `json:"title,omitzero"`
	Language         string   `json:"language,omitzero"`
	Canonical        string   `json:"canonical,omitzero"`
	Robots           []string `json:"robots,omitempty"`
	NoIndex          bool     `json:"noindex,omitzero"`
	UnavailableAfter string   `json:"unavailable_after,omitzero"`
	Preferences      []string `json:"preferences,omitempty"`
	Depth            int      `json:"depth"`
	Via              string   `json:"via,omitzero"`
	Outlinks         int      `json:"outlinks"`
	Redirect         string   `json:"redirect,omitzero"`
	Reason           string   `json:"reason,omitzero"`
	Error            string   `json:"error,omitzero"`
	Attempts         int      `json:"attempts"`
	Truncated        bool     `json:"truncated,omitzero"`
	Extracted        string   `json:"extracted,omitzero"`

	Fields map[string]any `json:"fields,omitempty"`
}

// timeLayout is RFC 3339 with milliseconds, always in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Encode returns the page as one line of JSON with its newline. Texts of strangers are cut after 1,024 bytes, and
// what is not UTF-8 in them is replaced. The error is [ErrPage], where there is no URL. Any goroutine may call it.
func (p Page) Encode() ([]byte, error) {
	if p.URL == "" {
		return nil, fmt.Errorf("%w: it has no URL", ErrPage)
	}
	l := line{
		Version:     Version,
		URL:         p.URL,
		Status:      p.Status,
		FirstByte:   milliseconds(p.FirstByte),
		Duration:    milliseconds(p.Duration),
		ContentType: clip(p.ContentType),
		Kind:        p.Kind,
		Bytes:       p.Bytes,
		Digest:      p.Digest,
		Title:       clip(p.Title),
		Language:    clip(p.Language),
		Canonical:   p.Canonical,
		Robots:      p.Robots,
		NoIndex:     p.NoIndex,
		Preferences: p.Preferences,
		Depth:       p.Depth,
		Via:         p.Via,
		Outlinks:    p.Outlinks,
		Redirect:    p.Redirect,
		Reason:      p.Reason,
		Error:       clip(p.Error),
		Attempts:    p.Attempts,
		Truncated:   p.Truncated,
		Extracted:   p.Extracted,
		Fields:      p.Fields,
	}
	if !p.UnavailableAfter.IsZero() {
		l.UnavailableAfter = p.UnavailableAfter.UTC().Format(time.RFC3339)
	}
	l.FetchedAt = formatTime(p.FetchedAt)
	return appendLine(nil, l)
}

// appendLine appends an object as a line with its newline.
func appendLine(b []byte, object any) ([]byte, error) {
	buffer := bytes.NewBuffer(b)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false) // URLs stay readable; nothing here ends up in a script
	if err := encoder.Encode(object); err != nil {
		return nil, fmt.Errorf("archive: encode a line: %w", err)
	}
	return buffer.Bytes(), nil
}

// formatTime is empty for no time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// milliseconds keeps microseconds.
func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// clip cuts a text to maxText bytes, not within a character.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
