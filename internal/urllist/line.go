package urllist

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/amble-crawler/amble/internal/weburl"
)

// shownText is the number of bytes of a bad line that are kept.
const shownText = 120

// bad returns the error for the current line.
func (r *Reader) bad(line []byte, reason string) *BadLine {
	return &BadLine{Line: r.line, Text: shorten(line), Reason: reason}
}

// shorten cuts a text between characters.
func shorten(text []byte) string {
	if len(text) <= shownText {
		return string(text)
	}
	end := shownText
	for end > shownText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return string(text[:end])
}

func (r *Reader) text(line []byte) (Item, error) {
	if bytes.IndexByte(line, ' ') >= 0 || bytes.IndexByte(line, '\t') >= 0 {
		return Item{}, r.bad(line, "holds white space; want one URL a line, in which a space is written %20")
	}
	return r.item(line, string(line), 0, 0)
}

func (r *Reader) object(line []byte) (Item, error) {
	var o struct {
		URL      *string `json:"url"`
		Depth    uint16  `json:"depth"`
		Priority int8    `json:"priority"`
	}
	if err := json.Unmarshal(line, &o); err != nil {
		return Item{}, r.bad(line, jsonReason(err))
	}
	if o.URL == nil {
		return Item{}, r.bad(line, `has no "url"`)
	}
	return r.item(line, *o.URL, o.Depth, o.Priority)
}

// foreign reads an object in the caller's format.
func (r *Reader) foreign(line []byte) (Item, error) {
	item, err := r.Objects(line)
	if err != nil {
		return Item{}, r.bad(line, urlReason(err))
	}
	item.Line = r.line
	return item, nil
}

func (r *Reader) item(line []byte, text string, depth uint16, priority int8) (Item, error) {
	if !utf8.ValidString(text) {
		return Item{}, r.bad(line, "is not UTF-8 text")
	}
	u, err := weburl.Parse(text)
	if err != nil {
		return Item{}, r.bad(line, urlReason(err))
	}
	return Item{URL: u, Depth: depth, Priority: priority, Line: r.line}, nil
}

func urlReason(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the text, which the error shows anyway
	}
	return err.Error()
}

func jsonReason(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return "is not a JSON object: " + err.Error()
	}
	wants := map[string]string{
		"url": "a text", "depth": "a whole number from 0 to 65535", "priority": "a whole number from -128 to 127",
	}
	return fmt.Sprintf("%q is not what it should be: %s", wrong.Field, wants[wrong.Field])
}
