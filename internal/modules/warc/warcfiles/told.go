//go:build !core

package warcfiles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
)

// Told is what the archive says of a capture besides its content.
type Told struct {
	Entry  warc.Entry
	Head   []byte      // of a redirect: the HTTP header of the response
	Fields warc.Header // of its metadata record; nil: there is none
}

const (
	// maxTold is how many bytes of a metadata record are read: as many requisites as a page may have fit.
	maxTold = 4 << 20
	// maxBehind is how many records belong to a response: its request, and its metadata record.
	maxBehind = 2
)

// Tell calls each for the captures of a WARC file that are wanted, in their order in the file. It reads nothing of the
// others.
func (c *Collection) Tell(ctx context.Context, f File, wanted func(*warc.Entry) bool, each func(*Told) error) error {
	var list []warc.Entry
	err := c.searchFile(f, "", func(e *warc.Entry) error {
		if wanted(e) {
			list = append(list, *e)
		}
		return ctx.Err()
	})
	if err == nil && len(list) > 0 {
		slices.SortFunc(list, func(a, b warc.Entry) int { return cmp.Compare(a.Offset, b.Offset) })
		err = c.tell(ctx, f, list, each)
	}
	if err != nil {
		return fmt.Errorf("archive: %s: %w", f.Name, err)
	}
	return nil
}

// TellOf is Tell for the captures of one URL that are not younger than a time: the newest ones first, until each
// returns false.
func (c *Collection) TellOf(ctx context.Context, url string, at time.Time, each func(*Told) (more bool)) error {
	files, err := c.byTime(true)
	if err != nil {
		return err
	}
	key := warc.IndexKey(url) + " "
	for _, f := range nearest(files, at.UTC()) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var list []warc.Entry
		err := c.searchFile(f, key, func(e *warc.Entry) error {
			if e.URL == url && !e.Time.After(at) {
				list = append(list, *e)
			}
			return nil
		})
		more := true
		slices.SortStableFunc(list, func(a, b warc.Entry) int { return b.Time.Compare(a.Time) })
		for i := 0; i < len(list) && err == nil && more; i++ {
			err = c.tell(ctx, f, list[i:i+1], func(t *Told) error { more = each(t); return nil })
		}
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// tell reads what follows the records of some captures, which are in the order of the file.
func (c *Collection) tell(ctx context.Context, f File, list []warc.Entry, each func(*Told) error) error {
	file, err := c.open(f)
	if err != nil {
		return err
	}
	defer file.Close()
	r := warc.NewReader(file)
	for i := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		t := Told{Entry: list[i]}
		err := t.read(r)
		if f.Open && (errors.Is(err, warc.ErrTorn) || errors.Is(err, io.EOF)) {
			return nil // the crawl writes there now
		}
		if err == nil {
			err = each(&t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads the records.
func (t *Told) read(r *warc.Reader) error {
	if t.Entry.Status/100 == 3 {
		head, _, err := blockAt(r, t.Entry.Offset, maxHTTPHead)
		if err != nil {
			return err
		}
		t.Head = head
	}
	at := t.Entry.Offset + t.Entry.Length
	for range maxBehind {
		block, rec, err := blockAt(r, at, maxTold)
		switch {
		case errors.Is(err, io.EOF) && !errors.Is(err, warc.ErrTorn):
			return nil // it is the last one
		case err != nil:
			return err
		case rec.Type() == warc.TypeMetadata:
			t.Fields = fieldsOf(block)
			return nil
		case rec.Type() != warc.TypeRequest:
			return nil
		}
		at = r.Offset()
	}
	return nil
}

// blockAt reads the record at an offset, and the start of its block.
func blockAt(r *warc.Reader, at int64, most int64) ([]byte, *warc.Record, error) {
	if err := r.Goto(at); err != nil {
		return nil, nil, err
	}
	rec, err := r.Next()
	if err != nil {
		return nil, nil, err
	}
	block, err := io.ReadAll(io.LimitReader(rec.Block, most))
	if err == nil {
		err = r.Skip()
	}
	return block, rec, err
}

// fieldsOf reads a block of the type application/warc-fields.
func fieldsOf(block []byte) (fields warc.Header) {
	for line := range bytes.Lines(block) {
		name, value, found := strings.Cut(strings.TrimRight(string(line), "\r\n"), ": ")
		if found && bytes.HasSuffix(line, []byte("\n")) {
			fields = append(fields, warc.Field{Name: name, Value: value})
		}
	}
	return fields
}
