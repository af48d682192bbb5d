package extract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// readText reads a text sitemap: a URL on each line.
func (l *listReader) readText(r io.Reader) error {
	in := bufio.NewReaderSize(r, maxFieldBytes)
	for {
		line, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if long {
			l.list.Refused++
		} else if text := string(bytes.Trim(line, space+"\ufeff")); text != "" && text[0] != '#' {
			if err := l.add(l.base, text, Item{Priority: defaultPriority}); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// maxFeedJSON bounds how many bytes of a JSON Feed are read. One of its items is held at a time.
const maxFeedJSON = 4 << 20

// jsonItem is what is read of an item of a JSON Feed (https://www.jsonfeed.org/version/1.1/).
type jsonItem struct {
	URL         string `json:"url"`
	ExternalURL string `json:"external_url"`
	Published   string `json:"date_published"`
	Modified    string `json:"date_modified"`
	Attachments []struct {
		URL string `json:"url"`
	} `json:"attachments"`
}

// readJSON reads a JSON Feed.
func (l *listReader) readJSON(r io.Reader) error {
	in := bufio.NewReader(io.LimitReader(r, maxFeedJSON))
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3)
	}
	err := l.readFeedObject(json.NewDecoder(in))
	var syntax *json.SyntaxError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errNoFeed) ||
		errors.As(err, &syntax) {
		l.list.Truncated, err = true, nil
	}
	return err
}

// errNoFeed is the error of JSON that is no feed.
var errNoFeed = errors.New("not a JSON Feed")

// expect reads the start or the end of an object or array.
func expect(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err == nil && t != want {
		return errNoFeed
	}
	return err
}

// decode reads the next value into v, as far as it fits.
func decode(d *json.Decoder, v any) error {
	err := d.Decode(v)
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return nil
	}
	return err
}

// readFeedObject reads the members of the feed as they come.
func (l *listReader) readFeedObject(d *json.Decoder) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := l.readFeedMember(d, name); err != nil {
			return err
		}
	}
	return expect(d, '}')
}

func (l *listReader) readFeedMember(d *json.Decoder, name json.Token) error {
	if name == "items" {
		return l.readFeedItems(d)
	}
	var text string
	if name != "title" && name != "home_page_url" && name != "next_url" {
		return d.Decode(new(json.RawMessage))
	}
	if err := decode(d, &text); err != nil {
		return err
	}
	switch name {
	case "home_page_url":
		return l.add(l.base, text, Item{Priority: defaultPriority})
	case "next_url":
		return l.add(l.base, text, Item{Role: RoleNext, Priority: defaultPriority})
	}
	l.list.Title = collapse(text, maxTitleBytes)
	return nil
}

// readFeedItems reads the items one by one.
func (l *listReader) readFeedItems(d *json.Decoder) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	for d.More() {
		var item jsonItem
		if err := decode(d, &item); err != nil {
			return err
		}
		if err := l.next(); err != nil {
			return err
		}
		if err := l.addFeedItem(&item); err != nil {
			return err
		}
	}
	return expect(d, ']')
}

func (l *listReader) addFeedItem(item *jsonItem) error {
	modified := parseDate(item.Modified)
	if published := parseDate(item.Published); published.After(modified) {
		modified = published
	}
	raw := item.URL
	if raw == "" {
		raw = item.ExternalURL
	}
	err := l.add(l.base, raw, Item{Modified: modified, Priority: defaultPriority})
	for j := 0; j < len(item.Attachments) && j < maxAlternates && err == nil; j++ {
		err = l.add(l.base, item.Attachments[j].URL, Item{Role: RoleMedia, Priority: defaultPriority})
	}
	return err
}
