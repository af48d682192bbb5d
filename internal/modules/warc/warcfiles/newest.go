//go:build !core

package warcfiles

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// Newest has the newest capture of each URL in the complete files of a collection: of responses with the status 200,
// and of redirects. Its memory does not grow with their number.
type Newest struct {
	waits *Merger
	lines *spool.Content
}

// Newest reads the indexes of the complete files. The lines wait in a pool.
func (c *Collection) Newest(ctx context.Context, pool *spool.Pool) (n *Newest, err error) {
	files, _, err := c.Complete()
	if err != nil {
		return nil, err
	}
	n = &Newest{waits: NewMerger(pool)}
	for _, f := range files {
		if err = ctx.Err(); err == nil {
			err = n.add(c, f)
		}
		if err != nil {
			n.Close()
			return nil, err
		}
	}
	w := pool.NewWriter(0)
	defer w.Discard()
	err = n.waits.Each(func(line []byte) error { _, err := w.Write(line); return err })
	if n.lines = w.Content(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Newest) add(c *Collection, f File) error {
	index, _, err := c.openIndex(f)
	if err != nil {
		return fmt.Errorf("archive: index of %s: %w", f.Name, err)
	}
	defer index.Close()
	var lines [][]byte
	err = eachLine(index, func(line []byte) (bool, error) {
		lines = append(lines, bytes.Clone(line))
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("archive: index of %s: %w", f.Name, err)
	}
	return n.waits.Add(lines)
}

// Close frees what waits.
func (n *Newest) Close() {
	n.waits.Close()
	_ = n.lines.Close() // it was read
}

// isWanted reports whether a capture shows what a URL is: its content, or where it leads.
func isWanted(e *warc.Entry) bool {
	switch e.Status {
	case http.StatusOK, http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// Find returns the newest capture of a URL. It is not found if there is none.
func (n *Newest) Find(url string) (best warc.Entry, found bool, err error) {
	r, key := n.lines.NewReader(), []byte(warc.IndexKey(url)+" ")
	at, err := seekLine(r, n.lines.Size(), key)
	if err != nil {
		return best, false, err
	}
	err = eachLine(io.NewSectionReader(r, at, n.lines.Size()-at), func(line []byte) (bool, error) {
		if !bytes.HasPrefix(line, key) {
			return false, nil
		}
		e, err := warc.ParseEntry(line)
		if err == nil && e.URL == url && isWanted(&e) {
			best, found = e, true // they are in the order of time
		}
		return true, err
	})
	return best, found, err
}

// Each calls each for the newest capture of every URL.
func (n *Newest) Each(each func(e warc.Entry) error) error {
	key := ""
	var urls []string // of the key at hand: nearly always one
	newest := make(map[string]warc.Entry)
	flush := func() error {
		for _, url := range urls {
			if err := each(newest[url]); err != nil {
				return err
			}
		}
		clear(newest)
		urls = urls[:0]
		return nil
	}
	err := eachLine(n.lines.NewReader(), func(line []byte) (bool, error) {
		e, err := warc.ParseEntry(line)
		if err != nil || !isWanted(&e) {
			return true, err
		}
		if e.Key != key {
			if err := flush(); err != nil {
				return false, err
			}
			key = e.Key
		}
		if _, seen := newest[e.URL]; !seen {
			urls = append(urls, e.URL)
		}
		newest[e.URL] = e
		return true, nil
	})
	if err != nil {
		return err
	}
	return flush()
}
