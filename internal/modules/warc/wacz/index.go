package wacz

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// mergeAt is how many sorted runs are merged to one.
const mergeAt = 32

// linesPerBlock is how many lines of the index are compressed together: a viewer reads that many for a page.
const linesPerBlock = 300

// index sorts the lines of all files. Those of one file are sorted in memory, where their file bounds them.
type index struct {
	pool *spool.Pool
	runs [][]*spool.Content // sorted lines, by how often they were merged
}

// add adds the lines of a file.
func (x *index) add(lines [][]byte) error {
	slices.SortFunc(lines, bytes.Compare)
	w := x.pool.NewWriter(0)
	defer w.Discard()
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return x.push(0, w.Content())
}

// push adds a run, and merges those of its level if they are many.
func (x *index) push(level int, run *spool.Content) error {
	if level == len(x.runs) {
		x.runs = append(x.runs, nil)
	}
	x.runs[level] = append(x.runs[level], run)
	if len(x.runs[level]) < mergeAt {
		return nil
	}
	w := x.pool.NewWriter(0)
	defer w.Discard()
	buffered := bufio.NewWriterSize(w, 1<<16)
	err := merge(x.runs[level], func(line []byte) error { _, err := buffered.Write(line); return err })
	if err = errors.Join(err, buffered.Flush()); err != nil {
		return err
	}
	for _, run := range x.runs[level] {
		err = errors.Join(err, run.Close())
	}
	x.runs[level] = nil
	return errors.Join(err, x.push(level+1, w.Content()))
}

func (x *index) close() {
	for _, run := range slices.Concat(x.runs...) {
		_ = run.Close() // it was read
	}
}

// merge calls each for the lines of sorted runs, in order, each once.
func merge(runs []*spool.Content, each func(line []byte) error) error {
	type source struct {
		lines *bufio.Reader
		line  []byte
	}
	var sources []*source
	next := func(s *source) (err error) {
		if s.line, err = s.lines.ReadBytes('\n'); errors.Is(err, io.EOF) {
			return nil // runs end with a whole line: there is none
		}
		return err
	}
	for _, run := range runs {
		s := &source{lines: bufio.NewReaderSize(run.NewReader(), 1<<14)}
		if err := next(s); err != nil {
			return err
		}
		if len(s.line) > 0 {
			sources = append(sources, s)
		}
	}
	var last []byte
	for len(sources) > 0 {
		least := 0
		for i := range sources {
			if bytes.Compare(sources[i].line, sources[least].line) < 0 {
				least = i
			}
		}
		s := sources[least]
		if !bytes.Equal(s.line, last) {
			if err := each(s.line); err != nil {
				return err
			}
		}
		last = s.line
		if err := next(s); err != nil {
			return err
		}
		if len(s.line) == 0 {
			sources = slices.Delete(sources, least, least+1)
		}
	}
	return nil
}

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
	err := p.part("indexes/"+data, func(out io.Writer) error {
		b := &block{out: out, list: w, lines: blocks, packer: gzip.NewWriter(nil)}
		err := merge(slices.Concat(p.index.runs...), func(line []byte) error {
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
	return p.part("indexes/index.idx", func(out io.Writer) error { _, err := content.WriteTo(out); return err })
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
