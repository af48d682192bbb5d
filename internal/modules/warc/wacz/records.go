//go:build !core

package wacz

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"hash"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/web/extract"
)

// maxHead bounds how many bytes of a response are searched for the end of its header.
const maxHead = 64 << 10

// level is that of records that are compressed again.
const level = 6

// measured counts and digests what is written.
type measured struct {
	w    io.Writer
	hash hash.Hash
	crc  hash.Hash32
	n    int64
}

func (m *measured) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	m.hash.Write(p[:n])
	m.crc.Write(p[:n])
	m.n += int64(n)
	return n, err
}

// file adds a WARC file, the lines of its index and its pages.
func (p *packer) file(ctx context.Context, f warcfiles.File) error {
	opened, err := p.c.OpenFile(f)
	if err != nil {
		return err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	name := nameOf(f)
	err = p.part("archive/"+name, zip.Store, func(w io.Writer) error {
		r := &recordReader{p: p, file: f.Name, name: name, out: w.(*measured)}
		if err := r.open(opened, name != f.Name); err != nil {
			return err
		}
		for ctx.Err() == nil {
			rec, err := r.source.Next()
			if errors.Is(err, io.EOF) {
				return r.end()
			}
			if err == nil {
				err = r.record(ctx, rec)
			}
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	p.r.Files++
	return p.took(f, info)
}

// recordReader reads the records of a file while they go to the package.
type recordReader struct {
	p       *packer
	file    string // its name
	name    string // in the package
	out     *measured
	source  *warc.Reader
	again   *warc.Packer // nil: the bytes of the file go to the package as they are
	lines   [][]byte     // of the index
	waiting *page        // its metadata record follows
	answer  string       // the record that it is of
}

func (r *recordReader) open(f *os.File, again bool) (err error) {
	if !again {
		r.source = warc.NewReader(io.TeeReader(f, r.out))
		return nil
	}
	r.source = warc.NewReader(f)
	r.again, err = warc.NewPacker(warc.Compression{Format: warc.FormatGzip, Level: level})
	return err
}

// record adds one record.
func (r *recordReader) record(ctx context.Context, rec *warc.Record) error {
	start, err := io.ReadAll(io.LimitReader(rec.Block, maxHead))
	if err != nil {
		return err
	}
	n, whole := warc.HTTPHead(start)
	if !whole {
		n = len(start)
	}
	entry, indexed := warc.EntryOf(rec.Header, start[:n])
	isPage := indexed && whole && mayBePage(&entry)
	var rest []byte
	if isPage && rec.Type() == warc.TypeResponse {
		if rest, err = io.ReadAll(io.LimitReader(rec.Block, extract.MaxDocument)); err != nil {
			return err
		}
	}
	offset := rec.Offset
	if r.again != nil {
		offset = r.out.n
		block := io.MultiReader(bytes.NewReader(start), bytes.NewReader(rest), rec.Block)
		if err := r.again.WriteFrom(r.out, renamed(rec.Header, r.name), block, rec.Size); err != nil {
			return err
		}
	}
	if err := r.source.Skip(); err != nil {
		return err
	}
	entry.Filename, entry.Offset, entry.Length = r.file, rec.Offset, r.source.Offset()-rec.Offset
	if indexed {
		packed := entry
		if packed.Filename, packed.Offset = r.name, offset; r.again != nil {
			packed.Length = r.out.n - offset
		}
		r.lines = append(r.lines, packed.Append(nil))
		r.p.r.Captures++
	}
	return r.page(ctx, rec, &entry, isPage, start[:n], append(start[n:], rest...))
}

// renamed returns the header of a record for a file with another name and compression.
func renamed(h warc.Header, name string) warc.Header {
	h = slices.DeleteFunc(slices.Clone(h), func(f warc.Field) bool {
		return strings.EqualFold(f.Name, warc.FieldLength) // the packer adds it
	})
	for i := range h {
		if strings.EqualFold(h[i].Name, warc.FieldFilename) {
			h[i].Value = name
		}
	}
	return h
}

// end ends the file.
func (r *recordReader) end() error {
	if err := r.flush(); err != nil {
		return err
	}
	for _, line := range r.lines {
		if _, err := r.p.unfinished.waiting[0].Write(line); err != nil {
			return err
		}
	}
	return r.p.index.Add(r.lines)
}
