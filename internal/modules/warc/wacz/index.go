//go:build !core

package wacz

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/amble-crawler/amble/internal/records/digest"
)

// linesPerBlock is how many lines of the index are compressed together: a viewer reads that many for a page.
const linesPerBlock = 300

// writeIndex adds the index as blocks that are compressed one by one, and the list of the blocks. A viewer reads that
// list, and then the blocks that it needs.
func (p *packer) writeIndex(ctx context.Context) error {
	const data = "index.cdx.gz"
	w := p.pool.NewWriter(0)
	defer w.Discard()
	blocks := json.NewEncoder(w)
	if _, err := io.WriteString(w, `!meta 0 {"format": "cdxj-gzip-1.0", "filename": "`+data+`"}`+"\n"); err != nil {
		return err
	}
	err := p.part("indexes/"+data, zip.Store, func(out io.Writer) error {
		b := &block{out: out, list: w, lines: blocks, packer: gzip.NewWriter(nil)}
		err := p.index.Each(func(line []byte) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return b.add(line)
		})
		if err != nil {
			return err
		}
		return b.flush()
	})
	if err != nil {
		return err
	}
	content := w.Content()
	defer content.Close()
	return p.part("indexes/index.idx", zip.Deflate, func(out io.Writer) error {
		_, err := content.WriteTo(out)
		return err
	})
}

// block gathers lines of the index that are compressed together.
type block struct {
	out    io.Writer
	list   io.Writer // of the blocks
	lines  *json.Encoder
	first  []byte // key and time of the first line
	text   []byte
	n      int
	offset int
	packed bytes.Buffer
	packer *gzip.Writer
}

func (b *block) add(line []byte) error {
	if b.n == 0 {
		key, _, _ := bytes.Cut(line, []byte(" {"))
		b.first = append(b.first[:0], key...)
	}
	b.text = append(b.text, line...)
	if b.n++; b.n < linesPerBlock {
		return nil
	}
	return b.flush()
}

func (b *block) flush() error {
	if b.n == 0 {
		return nil
	}
	b.packed.Reset()
	b.packer.Reset(&b.packed)
	_, err := b.packer.Write(b.text)
	if err = errors.Join(err, b.packer.Close()); err != nil {
		return err
	}
	if _, err := b.list.Write(append(b.first, ' ')); err != nil {
		return err
	}
	err = b.lines.Encode(struct {
		Offset int    `json:"offset"`
		Length int    `json:"length"`
		Digest string `json:"digest"`
	}{b.offset, b.packed.Len(), digest.Of(b.packed.Bytes()).String()})
	if err != nil {
		return err
	}
	b.offset += b.packed.Len()
	b.n, b.text = 0, b.text[:0]
	_, err = b.out.Write(b.packed.Bytes())
	return err
}
