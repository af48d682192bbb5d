package seeds

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Item is what a line of a list says: a URL, how far it is from a seed, and what is said of it as a seed.
type Item struct {
	URL   weburl.URL
	Bare  bool   // it is a host without a scheme, taken for one of https
	Depth uint16 // links from a seed
	Fields
}

// Seed returns the item as a seed, with where it was given.
func (l *Item) Seed(source string) Seed {
	return Seed{URL: l.URL, Bare: l.Bare, Source: source, Fields: l.Fields}
}

// ParseLine reads a line of a list: a URL or a host, and fields such as tags=news behind it; or a JSON object with url,
// the fields, and depth. Other members of an object are ignored, so that the lines of an export can be read again.
// The error says what is wrong, for people.
func ParseLine(text string) (l Item, err error) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") {
		return parseObject(text)
	}
	if !strings.ContainsAny(text, " \t") {
		l.URL, l.Bare, err = ParseURL(text)
		return l, err
	}
	words := strings.Fields(text)
	if l.URL, l.Bare, err = ParseURL(words[0]); err == nil {
		err = l.SetAll(words[1:])
	}
	if err != nil {
		return Item{}, err
	}
	return l, nil
}

func parseObject(text string) (l Item, err error) {
	var o struct {
		URL   *string `json:"url"`
		Depth uint16  `json:"depth"`
		Fields
	}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			name := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
			wants := map[string]string{
				"url": "a text", "depth": "a whole number from 0 to 65535",
				"priority": "a whole number from -128 to 127",
			}
			return l, fmt.Errorf("%q is not what it should be: %s", name, cmp.Or(wants[name], wrong.Type.String()))
		}
		return l, fmt.Errorf("is not a JSON object: %w", err)
	}
	if o.URL == nil {
		return l, errors.New(`has no "url"`)
	}
	l.Depth, l.Fields = o.Depth, o.Fields
	if l.URL, l.Bare, err = ParseURL(*o.URL); err == nil {
		err = l.Check()
	}
	return l, err
}

// DecodeObject reads one JSON object with url and fields, in which no other member may be.
func DecodeObject(b []byte) (l Item, err error) {
	var o struct {
		URL string `json:"url"`
		Fields
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return l, err
	}
	if _, err := d.Token(); err != io.EOF {
		return l, errors.New("has text behind the object")
	}
	l.Fields = o.Fields
	if l.URL, l.Bare, err = ParseURL(o.URL); err == nil {
		err = l.Check()
	}
	return l, err
}

// ParseURL reads a URL, or a host such as example.com or localhost:8080, which is taken for one of https. The error
// says what is wrong, for people.
func ParseURL(text string) (u weburl.URL, bare bool, err error) {
	switch {
	case text == "":
		return u, false, errors.New("is empty; want a URL such as https://example.com/")
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return u, false, errors.New("is not UTF-8 text; want a URL such as https://example.com/")
	case strings.ContainsAny(text, " \t\r\n"):
		return u, false, errors.New("contains white space; want one URL, in which a space is written %20")
	}
	if u, err = weburl.Parse(text); err == nil {
		return u, false, nil
	}
	if errors.Is(err, weburl.ErrScheme) {
		if u, is := withScheme(text); is {
			return u, true, nil
		}
	}
	return u, false, errors.New(reason(text, err))
}

func reason(text string, err error) string {
	switch {
	case errors.Is(err, weburl.ErrTooLong):
		return fmt.Sprintf("is too long (%d bytes); a URL may have %d bytes", len(text), weburl.MaxLength)
	case errors.Is(err, weburl.ErrNoHost):
		return "has no host; want a URL such as https://example.com/"
	case errors.Is(err, weburl.ErrScheme):
		if scheme, _, ok := strings.Cut(text, "://"); ok {
			return scheme + " is not supported; want a URL that begins with http:// or https://"
		}
		return "is not a URL; want one such as https://example.com/, or a host such as example.com"
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return "is not a URL that can be fetched (" + err.Error() + ")"
}

// withScheme returns the URL that a host without a scheme stands for, such as example.com or localhost:8080.
func withScheme(text string) (weburl.URL, bool) {
	if strings.Contains(text, "://") || strings.ContainsAny(text, "@\\") {
		return weburl.URL{}, false
	}
	text = strings.TrimLeft(text, "/")
	u, err := weburl.Parse("https://" + text)
	name, _, _ := strings.Cut(strings.NewReplacer("?", "/", "#", "/").Replace(text), "/")
	if err != nil || !strings.ContainsAny(name, ".:") && !strings.EqualFold(name, "localhost") { // a number is no host
		return weburl.URL{}, false
	}
	return u, true
}
