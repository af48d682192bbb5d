package archive

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Version is the version of the JSON lines of all formats. A reader may rely on the names and
// meanings of one version; a version may get new names.
const Version = 1

// maxText bounds the bytes of a text from outside (title, content type, language, error).
const maxText = 1024

// ErrPage means that a Page cannot be written as a line.
var ErrPage = errors.New("archive: not a page")

// Page is one URL in its final state: the fetched page, or the reason why none was fetched.
// docs/OUTPUT.md gives the name of each field in the line.
type Page struct {
	URL         string
	Status      int           // of the response; 0: there was none
	FetchedAt   time.Time     // start of the last request; zero: none was made
	FirstByte   time.Duration // from the start to the first byte of the response
	Duration    time.Duration // from the start to the end of the body
	ContentType string        // as the server sent it
	// of a document that is no page: sitemap, sitemap index, text sitemap, rss, atom, json feed
	Kind   string
	Bytes  int64  // of the decoded body that was kept
	Digest string // of the same bytes, as [digest.Digest] writes it
	// Changed says whether the page has, since an earlier response was read; nil: there was none. DigestBefore is the
	// beginning of the Digest of that; empty: it had none.
	Changed      *bool
	DigestBefore string

	Title       string
	Language    string
	Canonical   string   // the URL that the page names as its own
	Robots      []string // directives that the page gives to this crawler, in lower case
	NoIndex     bool     // the page must not be indexed: noindex, or UnavailableAfter has passed
	Preferences []string // the page's wishes for artificial intelligence and text mining, as name and value
	// Usage is what all sources together say about each category of use that one of them mentions.
	Usage    map[string]Usage
	Licenses []string // URLs of terms for the page
	Seed     string   // the seed that it belongs to; empty: none
	Tags     []string // of the seed
	Depth    int      // links from a seed
	Via      string   // the URL it was found on; empty for a seed
	Outlinks int      // different URLs the page links to
	Redirect string   // the target, if the response is a redirect
	Reason   string   // the reason for its final state, in one word, if the response does not show it
	Error    string   // the error, for people
	Note     string   // what the response says of its refusal: the price of a 402, who withholds it with 451
	Attempts int      // requests made for it, this one included
	// UnavailableAfter is the time after which the page must not be shown; zero: it has none.
	UnavailableAfter time.Time
	Truncated        bool   // the body was longer than the limit, or the connection broke: only its begin was read
	Extracted        string // how links and text were extracted, if not from all of it: a value below
	NeedsBrowser     bool   // it has scripts, hardly a link and hardly text: scripts make its content
	// Fields are the values that extract.rules take from the page, by name: a string or a []string each.
	Fields map[string]any
}

// Compare says whether the page has changed since an earlier response, and the first bytes of the digest of that.
func (p *Page) Compare(changed bool, before uint64) {
	p.Changed, p.DigestBefore = &changed, "sha256:"+hex.EncodeToString(binary.BigEndian.AppendUint64(nil, before))
}

// Usage is whether a use of a page is preferred.
type Usage struct {
	Preference string `json:"preference"` // y or n
	From       string `json:"from"`       // the statement that decides, and where it stands
}

// How links and text were extracted from a page.
const (
	ExtractedFlat = "flat" // elements that are nested too deep were read as siblings
	ExtractedPart = "part" // a bound cut some off
	// the body is that of an earlier response, from which all was extracted
	ExtractedEarlier = "earlier"
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
	Changed          *bool    `json:"changed,omitempty"`
	DigestBefore     string   `json:"digest_before,omitzero"`
	Title            string   `json:"title,omitzero"`
	Language         string   `json:"language,omitzero"`
	Canonical        string   `json:"canonical,omitzero"`
	Robots           []string `json:"robots,omitempty"`
	NoIndex          bool     `json:"noindex,omitzero"`
	UnavailableAfter string   `json:"unavailable_after,omitzero"`
	Preferences      []string `json:"preferences,omitempty"`

	Usage    map[string]Usage `json:"usage,omitempty"`
	Licenses []string         `json:"licenses,omitempty"`

	Seed      string   `json:"seed,omitzero"`
	Tags      []string `json:"tags,omitempty"`
	Depth     int      `json:"depth"`
	Via       string   `json:"via,omitzero"`
	Outlinks  int      `json:"outlinks"`
	Redirect  string   `json:"redirect,omitzero"`
	Reason    string   `json:"reason,omitzero"`
	Error     string   `json:"error,omitzero"`
	Note      string   `json:"note,omitzero"`
	Attempts  int      `json:"attempts"`
	Truncated bool     `json:"truncated,omitzero"`
	Extracted string   `json:"extracted,omitzero"`

	NeedsBrowser bool `json:"needs_browser,omitzero"`

	Fields map[string]any `json:"fields,omitempty"`
}

// timeLayout is RFC 3339 with milliseconds, always in UTC.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Encode returns the page as one line of JSON with its newline. Texts from outside are cut after 1,024 bytes, and
// invalid UTF-8 in them is replaced. The error is [ErrPage] if there is no URL. Any goroutine may call it.
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
		Changed:     p.Changed, DigestBefore: p.DigestBefore,
		Title:       clip(p.Title),
		Language:    clip(p.Language),
		Canonical:   p.Canonical,
		Robots:      p.Robots,
		NoIndex:     p.NoIndex,
		Preferences: p.Preferences,
		Usage:       p.Usage,
		Licenses:    p.Licenses,
		Seed:        p.Seed,
		Tags:        p.Tags,
		Depth:       p.Depth,
		Via:         p.Via,
		Outlinks:    p.Outlinks,
		Redirect:    p.Redirect,
		Reason:      p.Reason,
		Error:       clip(p.Error),
		Note:        clip(p.Note),
		Attempts:    p.Attempts,
		Truncated:   p.Truncated,
		Extracted:   p.Extracted,

		NeedsBrowser: p.NeedsBrowser,

		Fields: p.Fields,
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
	encoder.SetEscapeHTML(false) // URLs stay readable; no line ends up in a script
	if err := encoder.Encode(object); err != nil {
		return nil, fmt.Errorf("archive: encode a line: %w", err)
	}
	return buffer.Bytes(), nil
}

// formatTime returns the empty text for the zero time.
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

// clip cuts a text to at most maxText bytes, between characters.
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
