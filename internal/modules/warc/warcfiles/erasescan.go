//go:build !core

package warcfiles

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
)

// eraseScan is what a file holds.
type eraseScan struct {
	file string // its name
	name string // its name when it is complete
	kind string // its format, or kindIndex
	kept []span // of a WARC file: the bytes that stay
	end  int64  // of what can be read
	n    archive.ErasedFile
	// indexed means that it has an index, or should have one: that of a file that was set aside may be
	// missing.
	indexed bool
}

// kindIndex is the kind of an index without its WARC file.
const kindIndex = "index"

// span is a part of a file.
type span struct{ from, to int64 }

func (s *eraseScan) count(kind string) { s.n.Records[kind]++ }

// scan reads a file.
func (e *Eraser) scan(ctx context.Context, file string) (*eraseScan, error) {
	s := &eraseScan{file: file, n: archive.ErasedFile{File: file, Records: make(map[string]int)}}
	var ours bool
	if s.kind, s.name, ours = e.formatOf(file); !ours {
		s.name, s.kind = file, kindIndex
	}
	if !ours && !e.isOrphan(file) {
		return s, fmt.Errorf("archive: %q is no file of the output", file)
	}
	opened, err := e.disk.Open(e.path(file))
	if err != nil {
		return s, fmt.Errorf("archive: %w", err)
	}
	defer opened.Close()
	if s.kind == Name {
		_, missing := e.disk.Size(e.indexOf(s))
		s.indexed = s.isWhole() || missing == nil
		err = e.scanRecords(ctx, s, opened)
	} else {
		err = e.lines(ctx, s, opened, func([]byte) error { return nil })
	}
	if err != nil {
		return s, fmt.Errorf("archive: read %s: %w", file, err)
	}
	return s, nil
}

// isWhole reports whether a file has no torn end: it got its name when it was complete.
func (s *eraseScan) isWhole() bool { return s.file == s.name }

// scanRecords reads a WARC file and finds the records that are erased. An end that is torn, of a file
// that was never completed, is left out.
func (e *Eraser) scanRecords(ctx context.Context, s *eraseScan, f io.Reader) error {
	r := warc.NewReader(f)
	gone := "" // the id of the last response that was erased, whose request and metadata follow it
	for {
		rec, err := r.Next()
		if err == nil {
			if err = ctx.Err(); err == nil {
				err = r.Skip()
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, warc.ErrTorn) && !s.isWhole():
			s.count("torn end")
			return nil
		case errors.Is(err, warc.ErrTorn), errors.Is(err, warc.ErrFormat):
			return fmt.Errorf("%w: %w", archive.ErrUnreadable, err)
		case err != nil:
			return err
		}
		s.end = r.Offset()
		switch last := len(s.kept) - 1; {
		case e.isErased(rec.Header) || gone != "" && rec.Header.Get(warc.FieldConcurrentTo) == gone:
			if rec.Header.Get(warc.FieldConcurrentTo) == "" {
				gone = rec.Header.Get(warc.FieldRecordID)
			}
			s.count(rec.Type())
			s.n.Bytes += s.end - rec.Offset
		case last >= 0 && s.kept[last].to == rec.Offset:
			s.kept[last].to = s.end
		default:
			s.kept = append(s.kept, span{rec.Offset, s.end})
		}
	}
}

// isErased reports whether a record is of a host that is erased, or refers to one that is.
func (e *Eraser) isErased(h warc.Header) bool {
	for _, field := range []string{warc.FieldTargetURI, warc.FieldRefersToTargetURI} {
		if e.names.HasURL(strings.Trim(h.Get(field), "<>")) {
			return true
		}
	}
	return false
}

// lines reads a file of lines, finds those that are erased, and passes the others on.
func (e *Eraser) lines(ctx context.Context, s *eraseScan, f io.Reader, kept func([]byte) error) error {
	r, release, err := archive.Unpack(f, s.name)
	if err == nil {
		defer release()
		err = e.eachLine(ctx, s, r, kept)
	}
	switch {
	case err == nil:
		return nil
	case !s.isWhole() && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)):
		s.count("torn end")
		return nil
	case errors.Is(err, fs.ErrPermission), ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%w: %w", archive.ErrUnreadable, err)
}

func (e *Eraser) eachLine(ctx context.Context, s *eraseScan, from io.Reader, kept func([]byte) error) error {
	r := bufio.NewReaderSize(from, bufferBytes)
	for n := 0; ; n++ {
		line, err := r.ReadBytes('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			return nil
		case err == io.EOF && !s.isWhole(): // a line that was not written completely
			s.count("torn end")
			return nil
		case err != nil && err != io.EOF:
			return err
		case n%1024 == 0 && ctx.Err() != nil:
			return ctx.Err()
		}
		if e.isErasedLine(s, line) {
			s.count(s.kind)
			s.n.Bytes += int64(len(line))
			continue
		}
		if err := kept(line); err != nil {
			return err
		}
	}
}

// isErasedLine reports whether a line is of a page of a host that is erased. A line that cannot be
// read is, if it names such a host.
func (e *Eraser) isErasedLine(s *eraseScan, line []byte) bool {
	if !e.names.In(line) {
		return false
	}
	if s.kind == kindIndex {
		entry, err := warc.ParseEntry(line)
		return err != nil || e.names.HasURL(entry.URL)
	}
	var page struct{ URL, From string }
	if err := json.Unmarshal(line, &page); err != nil {
		return true
	}
	return e.names.HasURL(page.URL) || e.names.HasURL(page.From)
}
