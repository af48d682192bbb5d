package main

import (
	"fmt"
	"io"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/urlfrontier"
	"github.com/amble-crawler/amble/internal/urllist"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// formatURLFrontier is the value of --format for the lines of URLFrontier's client.
const formatURLFrontier = "urlfrontier"

// checkFormat returns an error for an unknown value of --format.
func checkFormat(format string) error {
	if format != "" && format != formatURLFrontier {
		return usagef("--format is %q; it may be %s, or left out", format, formatURLFrontier)
	}
	return nil
}

// frontierItems reads the lines of one import from URLFrontier.
type frontierItems struct {
	crawl string          // of all lines; empty: none was read yet
	put   *crawl.Imported // of the last line; nil: it was a plain URL
}

// parse is urllist.Reader.Objects.
func (f *frontierItems) parse(line []byte) (urllist.Item, error) {
	item, err := urlfrontier.ParseItem(line)
	if err != nil {
		return urllist.Item{}, err
	}
	if f.crawl == "" {
		f.crawl = item.Crawl
	}
	if item.Crawl != f.crawl {
		return urllist.Item{}, fmt.Errorf("is of crawl %q, and the lines before it are of crawl %q; a data_dir holds one "+
			"crawl, so dump each with DumpURLs -c", item.Crawl, f.crawl)
	}
	metadata, err := item.Metadata.Encode()
	if err != nil {
		return urllist.Item{}, err
	}
	f.put = &crawl.Imported{Created: item.Created, Metadata: metadata, Known: item.Known, Due: item.Due}
	return urllist.Item{URL: item.URL}, nil
}

// frontierWriter writes URLs as URLFrontier's client does.
type frontierWriter struct {
	w    io.Writer
	line []byte
}

// Write writes one URL. One without an outcome is discovered, any other known: with the date of its
// next request if there is one.
func (f *frontierWriter) Write(u *inspect.URL) (err error) {
	item := urlfrontier.Item{
		Crawl: urlfrontier.DefaultCrawl, Known: u.State != storage.Queued.String(), Due: u.Due, Created: u.FirstSeen,
		Metadata: u.Metadata,
	}
	if item.URL, err = weburl.Parse(u.URL); err != nil {
		return err
	}
	if f.line, err = urlfrontier.AppendItem(f.line[:0], &item); err == nil {
		_, err = f.w.Write(f.line)
	}
	return err
}
