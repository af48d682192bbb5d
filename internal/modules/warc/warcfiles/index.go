//go:build !core

package warcfiles

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
)

// The extensions of the files next to a WARC file, instead of its own.
const (
	indexExtension   = ".cdxj"      // the index of a complete file, sorted
	journalExtension = ".cdxj.open" // of the file being written: see index
)

// maxIndexBytes bounds an index, which is sorted in memory: a file whose index has that length
// takes no more records.
const maxIndexBytes = 16 << 20

// index keeps the index of each file of a WARC series.
//
// The journal is next to the file being written. It has a line for each record that was appended to
// the file, in order: the record's offset, its length, and its index entry if it has one. So the
// journal alone shows whether it covers the file up to a mark. It need not be synced: missing lines
// are read from the file itself. When the file is complete, the entries are sorted into the index.
type index struct {
	disk   archive.Disk
	dir    string
	file   archive.File // the journal; nil: there is none
	buffer *bufio.Writer
	length int64 // of the journal
	name   string
}

func newIndex(d archive.Disk, dir string) *index {
	return &index{disk: d, dir: dir, buffer: bufio.NewWriterSize(nil, 64<<10)}
}

// pathOf returns the path of a file next to the WARC file with a name.
func (x *index) pathOf(name, extension string) string {
	return filepath.Join(x.dir, baseOf(name)+extension)
}

// Full implements archive.Index.
func (x *index) Full() bool { return x.length >= maxIndexBytes }

// Begin begins the journal of a new file.
func (x *index) Begin(name string) error {
	x.Drop()
	if err := x.remove(x.pathOf(name, journalExtension)); err != nil {
		return err
	}
	f, err := x.disk.Create(x.pathOf(name, journalExtension))
	if err != nil {
		return fmt.Errorf("archive: begin an index: %w", err)
	}
	x.use(f, name, 0)
	return nil
}

func (x *index) use(f archive.File, name string, length int64) {
	x.file, x.name, x.length = f, name, length
	x.buffer.Reset(f)
}

// Add adds a record of the file being written. entry is its line up to the offset; nil if the index
// has no line for it.
func (x *index) Add(offset, length int64, entry []byte) error {
	line := appendJournal(x.buffer.AvailableBuffer(), offset, length, x.name, entry)
	n, err := x.buffer.Write(line)
	x.length += int64(n)
	return err
}

// Flush passes the journal to the system. It does not sync it.
func (x *index) Flush() error { return x.buffer.Flush() }

// Drop closes the journal without what was not flushed.
func (x *index) Drop() {
	if x.file != nil {
		x.file.Close()
		x.file = nil
	}
}

// Resume prepares the journal of a file that was cut to a length.
func (x *index) Resume(name, path string, length int64) error {
	lines, err := x.cover(name, path, length, parseJournal)
	if err != nil {
		return err
	}
	return x.rewrite(name, lines)
}

// parser reads a line of a journal. It is parseJournal, or splitJournal for a journal that is known
// to be undamaged.
type parser func(line []byte) (journalLine, bool)

// cover returns the lines for all records of a file up to a length. It takes them from the journal,
// and reads the missing ones from the file.
func (x *index) cover(name, path string, length int64, parse parser) ([]byte, error) {
	lines, covered, err := x.read(name, length, parse)
	if err != nil || covered == length {
		return lines, err
	}
	more, err := x.scan(name, path, lines, covered, length)
	if err != nil && covered > 0 { // the journal may be damaged
		more, err = x.scan(name, path, nil, 0, length)
	}
	return more, err
}

// rewrite makes a new journal of lines.
func (x *index) rewrite(name string, lines []byte) error {
	if err := x.remove(x.pathOf(name, indexExtension)); err != nil { // of a file that is reopened
		return err
	}
	if err := x.Begin(name); err != nil {
		return err
	}
	n, err := x.buffer.Write(lines)
	x.length += int64(n)
	return errors.Join(err, x.Flush())
}

// read returns the lines of the journal that cover the file without a gap, up to a length at most,
// and the length that they cover.
func (x *index) read(name string, length int64, parse parser) (lines []byte, covered int64, err error) {
	f, err := x.disk.Open(x.pathOf(name, journalExtension))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("archive: read an index: %w", err)
	}
	defer f.Close()
	var journal bytes.Buffer
	if x.name == name {
		journal.Grow(int(x.length) + bytes.MinRead)
	}
	if _, err := journal.ReadFrom(f); err != nil {
		return nil, 0, fmt.Errorf("archive: read an index: %w", err)
	}
	text := journal.Bytes()
	whole := 0
	for line := range bytes.Lines(text) {
		j, ok := parse(line)
		if !ok || j.offset != covered || j.offset+j.length > length {
			break
		}
		covered += j.length
		whole += len(line)
	}
	return text[:whole:whole], covered, nil
}

// scan adds the lines of the records of the file between two offsets.
func (x *index) scan(name, path string, lines []byte, from, to int64) ([]byte, error) {
	f, err := x.disk.Open(path)
	if err != nil {
		return nil, fmt.Errorf("archive: index %s: %w", path, err)
	}
	defer f.Close()
	r := warc.NewReader(io.LimitReader(f, to))
	if err := r.Goto(from); err != nil {
		return nil, fmt.Errorf("archive: index %s: %w", path, err)
	}
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return lines, nil
		}
		var entry []byte
		if err == nil {
			entry, err = entryOf(r, rec)
		}
		if err != nil {
			return nil, fmt.Errorf("archive: index %s from byte %d on: %w", path, from, err)
		}
		lines = appendJournal(lines, rec.Offset, r.Offset()-rec.Offset, name, entry)
	}
}

// maxHTTPHead bounds how many bytes of a response are searched for the end of its header.
const maxHTTPHead = 64 << 10

// entryOf makes the line of a record up to the offset, and reads the record to its end.
func entryOf(r *warc.Reader, rec *warc.Record) ([]byte, error) {
	e, ok, err := readEntry(r, rec)
	if err != nil || !ok {
		return nil, err
	}
	return e.AppendStart(nil), nil
}

// readEntry makes the entry of a record, with its length, and reads the record to its end.
func readEntry(r *warc.Reader, rec *warc.Record) (e warc.Entry, ok bool, err error) {
	head, err := io.ReadAll(io.LimitReader(rec.Block, maxHTTPHead))
	if err == nil {
		err = r.Skip()
	}
	if err != nil {
		return e, false, err
	}
	if n, whole := warc.HTTPHead(head); whole {
		head = head[:n]
	}
	e, ok = warc.EntryOf(rec.Header, head)
	e.Offset, e.Length = rec.Offset, r.Offset()-rec.Offset
	return e, ok, nil
}

// Complete writes the sorted index of a complete file, which still has archive.SuffixOpen at path.
func (x *index) Complete(name, path string) error {
	parse := parseJournal
	if x.name == name {
		parse = splitJournal
		if x.file != nil {
			if err := x.Flush(); err != nil {
				return fmt.Errorf("archive: write an index: %w", err)
			}
		}
		x.Drop()
	}
	size, err := x.disk.Size(path)
	if err != nil {
		return fmt.Errorf("archive: index %s: %w", path, err)
	}
	lines, err := x.cover(name, path, size, parse)
	if err != nil {
		return err
	}
	return x.save(name, sortedEntries(lines))
}

// save writes the index atomically.
func (x *index) save(name string, entries []byte) error {
	path := x.pathOf(name, indexExtension)
	if err := x.remove(path + ".new"); err != nil {
		return err
	}
	f, err := x.disk.Create(path + ".new")
	if err != nil {
		return fmt.Errorf("archive: write an index: %w", err)
	}
	_, err = f.Write(entries)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = x.disk.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("archive: write an index: %w", err)
	}
	return nil
}

// Forget removes the journal of a file that no longer needs it.
func (x *index) Forget(name string) error {
	if x.name == name {
		x.Drop()
	}
	return x.remove(x.pathOf(name, journalExtension))
}

// Sweep removes files that a crash left: unfinished indexes, and all journals but that of the open
// file.
func (x *index) Sweep(open string) error {
	names, err := x.disk.List(x.dir)
	if err != nil {
		return fmt.Errorf("archive: list %s: %w", x.dir, err)
	}
	for _, file := range names {
		base, journal := strings.CutSuffix(file, journalExtension)
		if journal && base != baseOf(open) || strings.HasSuffix(file, indexExtension+".new") {
			if err := x.remove(filepath.Join(x.dir, file)); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetAside renames the index of a file that is set aside. It gets the suffix that the file gets.
func (x *index) SetAside(name, suffix string) error {
	if err := x.Forget(name); err != nil {
		return err
	}
	path := x.pathOf(name, indexExtension)
	err := x.disk.Rename(path, path+suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remove deletes a file that may not be there.
func (x *index) remove(path string) error {
	err := x.disk.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("archive: %w", err)
}

// sortedEntries returns the entries of a journal in the form of the index: sorted by their bytes,
// each once.
func sortedEntries(journal []byte) []byte {
	var entries [][]byte
	for line := range bytes.Lines(journal) {
		if j, ok := splitJournal(line); ok && len(j.entry) > 0 {
			entries = append(entries, j.entry)
		}
	}
	slices.SortFunc(entries, bytes.Compare)
	return bytes.Join(entries, nil)
}

// journalLine is a line of the journal of a WARC file.
type journalLine struct {
	offset, length int64
	entry          []byte // of the index, with its newline; empty: the record has none
}

// appendJournal appends a line. An entry, which is the start of a line of the index, is completed
// with the offset and the file's name.
func appendJournal(b []byte, offset, length int64, name string, entry []byte) []byte {
	b = strconv.AppendInt(b, offset, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, length, 10)
	if entry == nil {
		return append(b, '\n')
	}
	b = append(b, ' ')
	b = append(b, entry...)
	return warc.AppendEnd(b, offset, name)
}

// parseJournal reads a line. A line without its newline was not written completely and is not ok;
// nor is a line in which a power cut left a hole.
func parseJournal(line []byte) (j journalLine, ok bool) {
	if j, ok = splitJournal(line); ok && j.entry != nil {
		_, err := warc.ParseEntry(j.entry)
		ok = err == nil
	}
	return j, ok
}

// splitJournal reads a line that this process wrote, or has read before.
func splitJournal(line []byte) (j journalLine, ok bool) {
	text, found := bytes.CutSuffix(line, []byte("\n"))
	if !found {
		return j, false
	}
	offset, rest, _ := bytes.Cut(text, []byte(" "))
	length, entry, has := bytes.Cut(rest, []byte(" "))
	var err, other error
	j.offset, err = strconv.ParseInt(string(offset), 10, 64)
	j.length, other = strconv.ParseInt(string(length), 10, 64)
	if err != nil || other != nil || j.offset < 0 || j.length <= 0 {
		return journalLine{}, false
	}
	if has {
		j.entry = line[len(text)-len(entry):]
	}
	return j, true
}
