//go:build !core

package warcfiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strings"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
)

// Problem is a defect of a file.
type Problem struct {
	File   string
	Offset int64 // of the record; negative: of none
	Text   string
}

// String returns the problem for people.
func (p Problem) String() string {
	if p.Offset < 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s, record at byte %d: %s", p.File, p.Offset, p.Text)
}

// Verified counts what Verify read.
type Verified struct {
	Files, Records, Captures, Lines int
	Bytes                           int64
}

// Verify reads the whole collection and reports every defect. In WARC files it checks lengths,
// digests, checksums, required fields, which records belong together, the originals of revisit
// records, and the index. In files of lines it checks that each line is an object of JSON. The last
// record or line of an unfinished file may be incomplete. An error means that it could not
// continue.
func (c *Collection) Verify(ctx context.Context, report func(Problem)) (v Verified, err error) {
	files, err := c.Files()
	if err != nil {
		return v, err
	}
	for _, f := range files {
		k := &verifier{c: c, file: f, report: report, v: &v}
		if f.Format == Name {
			err = k.warc(ctx)
		} else {
			err = k.lines(ctx)
		}
		if ctx.Err() != nil {
			return v, ctx.Err()
		}
		if err != nil {
			k.problem(-1, "%v", err)
		}
		v.Files++
	}
	return v, nil
}

// verifier verifies one file.
type verifier struct {
	c      *Collection
	file   File
	report func(Problem)
	v      *Verified

	index  map[int64]warc.Entry // by offset; entries of records that were found are removed
	sorted bool
	info   string // the id of the first record
	answer string // that of the last response or revisit record
}

func (k *verifier) problem(offset int64, format string, args ...any) {
	k.report(Problem{File: k.file.Name, Offset: offset, Text: fmt.Sprintf(format, args...)})
}

func (k *verifier) warc(ctx context.Context) error {
	f, err := k.c.open(k.file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := k.readIndex(); err != nil {
		k.problem(-1, "its index: %v", err)
	}
	r := warc.NewReader(f)
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec, err := r.Next()
		if err == nil {
			if err = k.record(ctx, r, rec, n); err != nil {
				err = fmt.Errorf("record at byte %d: %w", rec.Offset, err)
			}
		}
		switch {
		case err == io.EOF, errors.Is(err, warc.ErrTorn) && k.file.Open:
			k.v.Bytes += r.Offset()
			return k.leftOver()
		case err != nil:
			return err
		}
		k.v.Records++
	}
}

// readIndex reads the index into memory; its length is bounded.
func (k *verifier) readIndex() error {
	k.index = make(map[int64]warc.Entry)
	f, sorted, err := k.c.openIndex(k.file)
	if errors.Is(err, fs.ErrNotExist) && k.file.Open {
		return nil // it has just been begun
	}
	if err != nil {
		return err
	}
	defer f.Close()
	k.sorted = sorted
	last := ""
	return eachLine(f, func(line []byte) (bool, error) {
		if !sorted {
			j, ok := parseJournal(line)
			if !ok || len(j.entry) == 0 {
				return true, nil
			}
			line = j.entry
		} else if text := string(line); text <= last {
			k.problem(-1, "its index: a line is not behind the one before it: %.200q", text)
		} else {
			last = text
		}
		e, err := warc.ParseEntry(line)
		if err != nil {
			return false, err
		}
		if _, twice := k.index[e.Offset]; twice {
			k.problem(e.Offset, "the index has it twice")
		}
		k.index[e.Offset] = e
		return true, nil
	})
}

// leftOver reports the lines of the index that have no record.
func (k *verifier) leftOver() error {
	if !k.sorted {
		return nil // they may be ahead of the file
	}
	for offset := range k.index {
		k.problem(offset, "the index names it, and there is no such record")
	}
	return nil
}

// record verifies one record and reads it to its end.
func (k *verifier) record(ctx context.Context, r *warc.Reader, rec *warc.Record, n int) error {
	h := rec.Header
	for _, name := range []string{warc.FieldType, warc.FieldRecordID, warc.FieldDate} {
		if h.Get(name) == "" {
			k.problem(rec.Offset, "it has no %s", name)
		}
	}
	if (n == 0) != (rec.Type() == warc.TypeInfo) {
		k.problem(rec.Offset, "it is a %s record, and a file begins with its only warcinfo", rec.Type())
	}
	if name := h.Get(warc.FieldFilename); rec.Type() == warc.TypeInfo && name != k.file.Name {
		k.problem(rec.Offset, "it says that the file is %q", name)
	}
	if n == 0 {
		k.info = h.Get(warc.FieldRecordID)
	}
	if id := h.Get(warc.FieldInfoID); id != "" && id != k.info {
		k.problem(rec.Offset, "it says that %s describes its file, and that is %s", id, k.info)
	}
	head, err := k.digests(ctx, r, rec)
	if err != nil {
		return err
	}
	k.chain(ctx, rec)
	k.entry(rec, head, r.Offset()-rec.Offset)
	return nil
}

// digests checks the digests of a record, whose block it reads, and returns the header of the HTTP
// message in it.
func (k *verifier) digests(ctx context.Context, r *warc.Reader, rec *warc.Record) (head []byte, err error) {
	start, err := io.ReadAll(io.LimitReader(rec.Block, maxHTTPHead))
	if err != nil {
		return nil, err
	}
	head = start
	whole := false
	if strings.HasPrefix(rec.Header.Get(warc.FieldContentType), "application/http") {
		var n int
		if n, whole = warc.HTTPHead(start); whole {
			head = start[:n]
		}
	}
	block, payload := digest.NewHash(), digest.NewHash()
	block.Write(start)
	payload.Write(start[len(head):])
	if _, err := io.Copy(io.MultiWriter(block, payload), contextReader{ctx, rec.Block}); err != nil {
		return nil, err
	}
	if err := r.Skip(); err != nil {
		return nil, err
	}
	answer := rec.Type() == warc.TypeResponse && whole
	if answer {
		k.digest(rec, warc.FieldPayloadDigest, payload)
	}
	if !answer || rec.Header.Get(warc.FieldBlockDigest) != "" { // a response may lack it
		k.digest(rec, warc.FieldBlockDigest, block)
	}
	return head, nil
}

// contextReader stops when its context ends. A short record may stand for gigabytes.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

func (k *verifier) digest(rec *warc.Record, name string, h hash.Hash) {
	text := rec.Header.Get(name)
	want, err := digest.Parse(text)
	switch got := digest.Sum(h); {
	case text == "":
		k.problem(rec.Offset, "it has no %s", name)
	case err != nil:
		k.problem(rec.Offset, "%s: %v", name, err)
	case got != want:
		k.problem(rec.Offset, "its %s is %s, what is there has %s", name, want, got)
	}
}

// chain checks the references of a record: request and metadata belong to the response before them,
// and the original of a revisit record is in the collection.
func (k *verifier) chain(ctx context.Context, rec *warc.Record) {
	switch rec.Type() {
	case warc.TypeResponse:
		k.answer = rec.Header.Get(warc.FieldRecordID)
	case warc.TypeRevisit:
		k.answer = rec.Header.Get(warc.FieldRecordID)
		if rec.Header.Get(warc.FieldRefersToTargetURI) == "" &&
			rec.Header.Get(warc.FieldProfile) == warc.ProfileNotModified {
			return // a 304 without a stored original
		}
		if _, err := k.c.original(ctx, rec.Header); err != nil && !errors.Is(err, ErrElsewhere) {
			k.problem(rec.Offset, "%v", err)
		}
	case warc.TypeRequest, warc.TypeMetadata:
		if id := rec.Header.Get(warc.FieldConcurrentTo); id != k.answer || id == "" {
			k.problem(rec.Offset, "it belongs to %s, and the response before it is %s", id, k.answer)
		}
	}
}

// entry checks the line of the index.
func (k *verifier) entry(rec *warc.Record, head []byte, length int64) {
	want, indexed := warc.EntryOf(rec.Header, head)
	got, found := k.index[rec.Offset]
	delete(k.index, rec.Offset)
	if !indexed {
		if found {
			k.problem(rec.Offset, "the index has a line for a %s record", rec.Type())
		}
		return
	}
	k.v.Captures++
	want.Offset, want.Length, want.Filename = rec.Offset, length, k.file.Name
	switch {
	case !found && k.sorted:
		k.problem(rec.Offset, "the index has no line for it")
	case found && got != want:
		k.problem(rec.Offset, "the index says %+v, the record is %+v", got, want)
	}
}

// lines verifies a file of lines.
func (k *verifier) lines(ctx context.Context) error {
	f, err := k.c.open(k.file)
	if err != nil {
		return err
	}
	defer f.Close()
	k.v.Bytes += k.file.Size
	r, release, err := archive.Unpack(f, k.file.Name)
	if err != nil {
		return k.torn(err)
	}
	defer release()
	n := 0
	return k.torn(eachLine(r, func(line []byte) (bool, error) {
		n++
		if line[len(line)-1] != '\n' {
			if !k.file.Open {
				k.problem(-1, "line %d has no end", n)
			}
			return false, nil
		}
		if !json.Valid(line) || line[0] != '{' {
			k.problem(-1, "line %d is no JSON object: %.80q", n, line)
		}
		k.v.Lines++
		return true, ctx.Err()
	}))
}

// torn skips the end of an unfinished file.
func (k *verifier) torn(err error) error {
	if k.file.Open && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) {
		return nil
	}
	return err
}
