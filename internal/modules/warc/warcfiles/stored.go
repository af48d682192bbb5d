//go:build !core

package warcfiles

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/web/fetch"
)

// Capture is the entry of a stored response, in its JSON form for people.
type Capture warc.Entry

// MarshalJSON implements json.Marshaler.
func (c Capture) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		URL    string    `json:"url"`
		Time   time.Time `json:"time"`
		Status int       `json:"status"`
		Type   string    `json:"type"`
		Digest string    `json:"digest,omitzero"`
		File   string    `json:"file"`
		Offset int64     `json:"offset"`
		Length int64     `json:"length"`
	}{c.URL, c.Time, c.Status, c.Mime, c.Digest, c.Filename, c.Offset, c.Length})
	return b.Bytes(), err
}

// ParseMoment parses a time in the forms that people and archives write. A day means its last second. An empty text is
// the zero time.
func ParseMoment(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.Add(24*time.Hour - time.Second), nil
	}
	for _, layout := range []string{time.RFC3339, "20060102150405"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time, such as 2026-11-20, 2026-11-20T12:14:15Z or 20261120121415", text)
}

// Plain returns the body without chunks and content encodings. release ends the reading.
func (s *Stored) Plain() (body io.Reader, release func(), err error) {
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(s.BodyHead), s.Body)), nil)
	if err != nil {
		return nil, nil, err
	}
	return fetch.Decode(resp.Header, resp.Body)
}

// Responses calls each for every response record of a URL in a WARC file, in their order. cut says that the end of the
// response is missing.
func Responses(file io.Reader, url string, each func(response io.Reader, cut bool) error) error {
	reader := warc.NewReader(file)
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if record.Type() != warc.TypeResponse || record.Header.Get(warc.FieldTargetURI) != url {
			continue
		}
		if err := each(record.Block, record.Header.Get(warc.FieldTruncated) != ""); err != nil {
			return err
		}
	}
}
