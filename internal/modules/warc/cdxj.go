package warc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrEntry means that a text is no line of a CDXJ index.
var ErrEntry = errors.New("warc: not a line of a CDXJ index")

// timestampLayout is the time of an entry: fourteen digits, UTC.
const timestampLayout = "20060102150405"

// Entry is a line of a CDXJ index: the place of a capture of a URL in the files.
type Entry struct {
	Key      string // of URL: see the function Key
	Time     time.Time
	URL      string
	Mime     string // media type; MimeRevisit for a revisit record
	Status   int    // of the HTTP response; 0: not known
	Digest   string // of the payload
	Offset   int64  // of the record in the file
	Length   int64  // of its gzip member
	Filename string
}

// MimeRevisit is the Mime of a revisit record.
const MimeRevisit = "warc/revisit"

// entryJSON is the JSON in a line, for reading. Numbers are texts in it, as other tools write them.
type entryJSON struct {
	URL      string `json:"url"`
	Mime     string `json:"mime"`
	Status   string `json:"status"`
	Digest   string `json:"digest"`
	Length   string `json:"length"`
	Offset   string `json:"offset"`
	Filename string `json:"filename"`
}

// Append appends the entry as a line with its newline.
func (e *Entry) Append(b []byte) []byte {
	b = e.AppendStart(b)
	return AppendEnd(b, e.Offset, e.Filename)
}

// AppendStart appends the part of the line that is known before the file and the offset of the
// record are.
func (e *Entry) AppendStart(b []byte) []byte {
	b = e.appendKey(slices.Grow(b, len(e.Key)+len(e.URL)+len(e.Mime)+len(e.Digest)+100))
	b = appendText(append(b, `{"url":`...), e.URL)
	if e.Mime != "" {
		b = appendText(append(b, `,"mime":`...), e.Mime)
	}
	if e.Status != 0 {
		b = append(strconv.AppendInt(append(b, `,"status":"`...), int64(e.Status), 10), '"')
	}
	if e.Digest != "" {
		b = appendText(append(b, `,"digest":`...), e.Digest)
	}
	b = append(b, `,"length":"`...)
	return append(strconv.AppendInt(b, e.Length, 10), '"')
}

// AppendEnd appends the rest of the line, with its newline.
func AppendEnd(b []byte, offset int64, filename string) []byte {
	b = append(b, `,"offset":"`...)
	b = strconv.AppendInt(b, offset, 10)
	b = appendText(append(b, `","filename":`...), filename)
	return append(b, "}\n"...)
}

// appendText appends a text as JSON. Most texts need no escapes.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return appendEscaped(b, s)
		}
	}
	b = append(append(b, '"'), s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	text := bytes.NewBuffer(b)
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		panic(err) // a text can always be encoded
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// appendKey appends the start of the line, by which lines are sorted: key and time, each followed
// by a space.
func (e *Entry) appendKey(b []byte) []byte {
	b = append(append(b, e.Key...), ' ')
	return append(appendTimestamp(b, e.Time), ' ')
}

// appendTimestamp appends a time as timestampLayout has it. The time package formats only layouts
// of its own fast.
func appendTimestamp(b []byte, t time.Time) []byte {
	var text [len(time.RFC3339)]byte
	for _, c := range t.UTC().AppendFormat(text[:0], time.RFC3339) {
		if '0' <= c && c <= '9' {
			b = append(b, c)
		}
	}
	return b
}

// ParseEntry reads a line, with its newline or without. It ignores unknown fields.
func ParseEntry(line []byte) (Entry, error) {
	key, rest, found := bytes.Cut(line, []byte(" "))
	stamp, text, more := bytes.Cut(rest, []byte(" "))
	if !found || !more || len(key) == 0 {
		return Entry{}, fmt.Errorf("%w: %.80q", ErrEntry, line)
	}
	t, err := time.Parse(timestampLayout, string(stamp))
	if err != nil {
		return Entry{}, fmt.Errorf("%w: its time is %.40q", ErrEntry, stamp)
	}
	var j entryJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	e := Entry{Key: string(key), Time: t, URL: j.URL, Mime: j.Mime, Digest: j.Digest, Filename: j.Filename}
	e.Offset, err = strconv.ParseInt(j.Offset, 10, 64)
	if err == nil {
		e.Length, err = strconv.ParseInt(j.Length, 10, 64)
	}
	if err == nil && j.Status != "" && j.Status != "-" {
		e.Status, err = strconv.Atoi(j.Status)
	}
	if err != nil || e.Offset < 0 || e.Length < 0 {
		return Entry{}, fmt.Errorf("%w: it has an invalid number: %.200q", ErrEntry, text)
	}
	return e, nil
}

// EntryOf makes the entry of a record that an index lists: a response or a revisit of a URL. http
// is the header of the HTTP response in its block. The caller sets Offset, Length and Filename.
// Other records are not ok.
func EntryOf(h Header, http []byte) (e Entry, ok bool) {
	kind, url := h.Get(FieldType), h.Get(FieldTargetURI)
	if kind != TypeResponse && kind != TypeRevisit {
		return Entry{}, false
	}
	at, err := ParseDate(h.Get(FieldDate))
	if err != nil || url == "" {
		return Entry{}, false
	}
	return NewEntry(kind, url, at, h.Get(FieldPayloadDigest), http), true
}

// NewEntry makes the entry of a response or a revisit, as [EntryOf] does, of what its header says.
func NewEntry(kind, url string, at time.Time, digest string, http []byte) Entry {
	e := Entry{
		Key: IndexKey(url), Time: at.UTC().Truncate(time.Second), URL: url, Mime: MimeRevisit, Status: Status(http),
		Digest: digest,
	}
	if kind != TypeRevisit {
		e.Mime = mediaType(HTTPField(http, "Content-Type"))
	}
	return e
}

// IndexKey returns the key of a URL in an index: one word, whatever the URL.
func IndexKey(url string) string { return strings.ReplaceAll(Key(url), " ", "%20") }

// mediaType returns a Content-Type without its parameters.
func mediaType(contentType string) string {
	if end := strings.IndexAny(contentType, "; \t"); end >= 0 {
		contentType = contentType[:end]
	}
	return strings.ToValidUTF8(contentType, "\uFFFD")
}
