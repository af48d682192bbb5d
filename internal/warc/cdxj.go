package warc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrEntry says that a text is no line of a CDXJ index.
var ErrEntry = errors.New("warc: not a line of a CDXJ index")

// timestampLayout is the time of an entry: fourteen digits, UTC.
const timestampLayout = "20060102150405"

// Entry is a line of a CDXJ index: where a capture of a URL lies.
type Entry struct {
	Key      string // of URL: see the function Key
	Time     time.Time
	URL      string
	Mime     string // media type; MimeRevisit for a revisit record
	Status   int    // of the HTTP answer; 0: not known
	Digest   string // of the payload
	Offset   int64  // of the record in the file
	Length   int64  // of its gzip member
	Filename string
}

// MimeRevisit is the Mime of a revisit record.
const MimeRevisit = "warc/revisit"

// entryJSON is the JSON in a line. Numbers are texts in it, as the tools write them.
type entryJSON struct {
	URL      string `json:"url"`
	Mime     string `json:"mime,omitempty"`
	Status   string `json:"status,omitempty"`
	Digest   string `json:"digest,omitempty"`
	Length   string `json:"length"`
	Offset   string `json:"offset"`
	Filename string `json:"filename"`
}

// Append appends the entry as a line with its newline.
func (e *Entry) Append(b []byte) []byte {
	b = e.AppendKey(b)
	buffer := bytes.NewBuffer(b)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	j := entryJSON{
		URL: e.URL, Mime: e.Mime, Digest: e.Digest, Filename: e.Filename,
		Length: strconv.FormatInt(e.Length, 10), Offset: strconv.FormatInt(e.Offset, 10),
	}
	if e.Status != 0 {
		j.Status = strconv.Itoa(e.Status)
	}
	if err := encoder.Encode(j); err != nil {
		panic(err) // texts can be encoded
	}
	return buffer.Bytes()
}

// AppendKey appends what the line begins with and is sorted by: key and time, each with a space behind it.
func (e *Entry) AppendKey(b []byte) []byte {
	b = append(append(b, e.Key...), ' ')
	return append(e.Time.UTC().AppendFormat(b, timestampLayout), ' ')
}

// ParseEntry reads a line, with its newline or without. Fields that it does not know are passed over.
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
		return Entry{}, fmt.Errorf("%w: a number in it is none: %.200q", ErrEntry, text)
	}
	return e, nil
}

// EntryOf makes the entry of a record that an index names: a response or a revisit of a URL. http is the header of the HTTP answer
// in its block. Offset, Length and Filename are left to the caller. Other records are not ok.
func EntryOf(h Header, http []byte) (e Entry, ok bool) {
	kind := h.Get(FieldType)
	if kind != TypeResponse && kind != TypeRevisit {
		return Entry{}, false
	}
	e = Entry{URL: h.Get(FieldTargetURI), Digest: h.Get(FieldPayloadDigest), Status: Status(http)}
	var err error
	if e.Time, err = ParseDate(h.Get(FieldDate)); err != nil || e.URL == "" {
		return Entry{}, false
	}
	e.Time = e.Time.UTC().Truncate(time.Second)
	e.Key = IndexKey(e.URL)
	if kind == TypeRevisit {
		e.Mime = MimeRevisit
	} else {
		e.Mime = mediaType(HTTPField(http, "Content-Type"))
	}
	return e, true
}

// IndexKey is the key of a URL as an index has it: one word, whatever the URL.
func IndexKey(url string) string { return strings.ReplaceAll(Key(url), " ", "%20") }

// mediaType is a Content-Type without its parameters.
func mediaType(contentType string) string {
	if end := strings.IndexAny(contentType, "; \t"); end >= 0 {
		contentType = contentType[:end]
	}
	return strings.ToValidUTF8(contentType, "\uFFFD")
}
