package extract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// readText reads a text sitemap: a URL a line.
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

// maxFeedJSON bounds a JSON Feed, which is held whole.
const maxFeedJSON = 4 << 20

// jsonFeed is what is read of a JSON Feed (https://www.jsonfeed.org/version/1.1/).
type jsonFeed struct {
	Title    string `json:"title"`
	HomePage string `json:"home_page_url"`
	NextURL  string `json:"next_url"`
	Items    []struct {
		URL         string `json:"url"`
		ExternalURL string `json:"external_url"`
		Published   string `json:"date_published"`
		Modified    string `json:"date_modified"`
		Attachments []struct {
			URL string `json:"url"`
		} `json:"attachments"`
	} `json:"items"`
}

// readJSON reads a JSON Feed.
func (l *listReader) readJSON(r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxFeedJSON+1))
	var feed jsonFeed
	if err != nil || len(text) > maxFeedJSON || json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), &feed) != nil {
		l.list.Truncated = true
		return nil
	}
	l.list.Title = clip(strings.Join(strings.Fields(feed.Title), " "), maxTitleBytes)
	err = errors.Join(
		l.add(l.base, feed.HomePage, Item{Priority: defaultPriority}),
		l.add(l.base, feed.NextURL, Item{Role: RoleNext, Priority: defaultPriority}))
	for i := range feed.Items {
		if err != nil {
			return err
		}
		item := &feed.Items[i]
		modified := parseDate(item.Modified)
		if published := parseDate(item.Published); published.After(modified) {
			modified = published
		}
		raw := item.URL
		if raw == "" {
			raw = item.ExternalURL
		}
		err = l.add(l.base, raw, Item{Modified: modified, Priority: defaultPriority})
		for j := 0; j < len(item.Attachments) && j < maxAlternates && err == nil; j++ {
			err = l.add(l.base, item.Attachments[j].URL, Item{Role: RoleMedia, Priority: defaultPriority})
		}
	}
	return err
}
