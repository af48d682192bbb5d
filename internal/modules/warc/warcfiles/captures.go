//go:build !core

package warcfiles

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc"
	"github.com/amble-crawler/amble/internal/output/archive"
)

// ErrNoCapture means that the collection has no capture of a URL, or none of that time or before.
var ErrNoCapture = errors.New("archive: no capture of it is stored")

// ErrElsewhere means that another collection has the body of a revisit record.
var ErrElsewhere = errors.New("archive: its body is not here")

// Captures calls each for every capture whose URL begins with a prefix, file by file, in the order
// in which they were written. A prefix without a scheme stands for http and https. A WARC file
// without an index has no captures.
func (c *Collection) Captures(ctx context.Context, prefix string, each func(*warc.Entry) error) error {
	scheme, _, found := strings.Cut(prefix, "://")
	key := ""
	if found {
		key = prefixKey(prefix)
	} else if prefix != "" {
		scheme, key = "", prefixKey("http://"+prefix)
	}
	return c.search(ctx, key, func(e *warc.Entry) error {
		url := e.URL
		if scheme == "" {
			_, url, _ = strings.Cut(url, "://")
		}
		if !strings.HasPrefix(url, prefix) {
			return nil
		}
		return each(e)
	})
}

// prefixKey returns the start of the keys of all URLs with a prefix. The last part of the prefix
// may be the start of a longer one, but the key would treat it as a whole part. So the key ends at
// the last slash, or before the host.
func prefixKey(prefix string) string {
	start := strings.Index(prefix, "://") + 3
	slash := strings.LastIndexByte(strings.SplitN(prefix, "?", 2)[0], '/')
	if slash < start { // the host may be incomplete, too
		return ""
	}
	return strings.TrimSuffix(warc.Key(prefix[:slash+1]), "/")
}

// search calls each for every entry whose key begins with a text, file by file.
func (c *Collection) search(ctx context.Context, key string, each func(*warc.Entry) error) error {
	files, err := c.warcs()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.searchFile(f, key, each); err != nil {
			return fmt.Errorf("archive: index of %s: %w", f.Name, err)
		}
	}
	return nil
}

func (c *Collection) searchFile(f File, key string, each func(*warc.Entry) error) error {
	index, sorted, err := c.openIndex(f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer index.Close()
	if !sorted {
		return searchJournal(index, key, each)
	}
	info, err := index.Stat()
	if err != nil {
		return err
	}
	at, err := seekLine(index, info.Size(), []byte(key))
	if err != nil {
		return err
	}
	return eachLine(io.NewSectionReader(index, at, info.Size()-at), func(line []byte) (bool, error) {
		if !bytes.HasPrefix(line, []byte(key)) {
			return false, nil
		}
		e, err := warc.ParseEntry(line)
		if err != nil {
			return false, err
		}
		return true, each(&e)
	})
}

// searchJournal searches a journal. It ignores a line that a crawl has not yet written completely.
func searchJournal(r io.Reader, key string, each func(*warc.Entry) error) error {
	return eachLine(r, func(line []byte) (bool, error) {
		j, ok := splitJournal(line)
		if !ok || !bytes.HasPrefix(j.entry, []byte(key)) || len(j.entry) == 0 {
			return true, nil
		}
		e, err := warc.ParseEntry(j.entry)
		if err != nil {
			return true, nil // a power cut has left a hole in it
		}
		return true, each(&e)
	})
}

// maxLine bounds a line of an index: a URL can occur in it twice, with escapes.
const maxLine = 1 << 20

var errLongLine = fmt.Errorf("%w: it is longer than %d bytes", warc.ErrEntry, maxLine)

// eachLine calls f for each line with its newline (the last line may have none), until f returns
// false.
func eachLine(r io.Reader, f func(line []byte) (more bool, err error)) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for {
		part, err := lines.ReadSlice('\n')
		if len(long)+len(part) > maxLine {
			return errLongLine
		}
		if err == bufio.ErrBufferFull {
			long = append(long, part...)
			continue
		}
		if err != nil && err != io.EOF {
			return err
		}
		line := part
		if len(long) > 0 {
			line = append(long, part...)
			long = nil
		}
		if len(line) == 0 {
			return nil
		}
		if more, failed := f(line); failed != nil || !more || err == io.EOF {
			return failed
		}
	}
}

// seekLine returns the offset of the first line that is not less than a text, in a file of sorted
// lines.
func seekLine(r io.ReaderAt, size int64, text []byte) (int64, error) {
	low, high := int64(0), size // offsets of lines: those before low are less, the one at high is not
	for low < high {
		start, line, err := lineBehind(r, size, (low+high)/2)
		if err == nil && start >= high { // the middle is in the last remaining line
			start, line, err = lineBehind(r, size, low)
		}
		if err != nil {
			return 0, err
		}
		if bytes.Compare(line[:min(len(line), len(text))], text) < 0 {
			low = start + int64(len(line))
		} else {
			high = start
		}
	}
	return low, nil
}

// lineBehind returns the first line that begins at an offset or behind it, and its offset. There is
// none at the end of the file.
func lineBehind(r io.ReaderAt, size, at int64) (start int64, line []byte, err error) {
	inside := at > 0
	if inside {
		at-- // a line that begins at the offset has its newline before it
	}
	start = at
	err = eachLine(io.NewSectionReader(r, at, size-at), func(l []byte) (bool, error) {
		if inside {
			inside = false
			start += int64(len(l))
			return true, nil
		}
		line = bytes.Clone(l)
		return false, nil
	})
	return start, line, err
}

// Find returns the newest capture of a URL that is not younger than a time; of any age if the time
// is zero. The error is [ErrNoCapture] if there is none.
func (c *Collection) Find(ctx context.Context, url string, at time.Time) (warc.Entry, error) {
	var best warc.Entry
	err := c.capturesOf(ctx, url, func(e *warc.Entry) {
		if (at.IsZero() || !e.Time.After(at)) && (best.URL == "" || !e.Time.Before(best.Time)) {
			best = *e
		}
	})
	if err == nil && best.URL == "" {
		err = ErrNoCapture
	}
	return best, err
}

func (c *Collection) capturesOf(ctx context.Context, url string, each func(*warc.Entry)) error {
	return c.search(ctx, warc.IndexKey(url)+" ", func(e *warc.Entry) error {
		if e.URL == url {
			each(e)
		}
		return nil
	})
}

// Stored is a capture that can be read.
type Stored struct {
	Entry     warc.Entry
	Head      []byte             // the HTTP header of the response, with the empty line
	Truncated archive.Truncation // why the body is incomplete; empty: it is complete
	// Body is what follows the header: in its content encoding, and in chunks only if an earlier
	// version stored it. Of a revisit record, it is the body of the original.
	Body io.Reader
	// BodyHead is the HTTP header that belongs to Body: Head, or that of the original.
	BodyHead []byte

	files []*os.File
}

// Close closes the files.
func (s *Stored) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Open opens a capture. The content of a revisit record is that of the capture that it refers to.
func (c *Collection) Open(ctx context.Context, e warc.Entry) (*Stored, error) {
	s := &Stored{Entry: e}
	rec, err := c.record(s, e)
	if err == nil && e.Mime == warc.MimeRevisit {
		err = c.resolveRevisit(ctx, s, rec)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("archive: %s at byte %d: %w", e.Filename, e.Offset, err), s.Close())
	}
	return s, nil
}

// record opens the record of an entry, and reads the HTTP header in it.
func (c *Collection) record(s *Stored, e warc.Entry) (*warc.Record, error) {
	_, _, _, ok := (format{}).Naming().Parse(e.Filename)
	if !ok {
		return nil, fmt.Errorf("%q is no WARC file of ours", e.Filename)
	}
	f, err := c.open(File{Name: e.Filename, Open: true})
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, f)
	r := warc.NewReader(io.NewSectionReader(f, 0, e.Offset+e.Length))
	if err := r.Goto(e.Offset); err != nil {
		return nil, err
	}
	rec, err := r.Next()
	if err != nil {
		return nil, err
	}
	if url := rec.Header.Get(warc.FieldTargetURI); url != e.URL {
		return nil, fmt.Errorf("the record is of %q", url)
	}
	content := bufio.NewReaderSize(rec.Block, maxHTTPHead)
	start, err := content.Peek(maxHTTPHead)
	if err != nil && err != io.EOF {
		return nil, err
	}
	n, whole := warc.HTTPHead(start)
	if !whole {
		return nil, errors.New("the record has no HTTP header")
	}
	s.BodyHead = bytes.Clone(start[:n])
	if s.Head == nil {
		s.Head = s.BodyHead
	}
	content.Discard(n) // the buffer has them
	s.Body, s.Truncated = content, archive.Truncation(rec.Header.Get(warc.FieldTruncated))
	return rec, nil
}

// resolveRevisit takes the body of a revisit record from the capture that it refers to.
func (c *Collection) resolveRevisit(ctx context.Context, s *Stored, rec *warc.Record) error {
	e, err := c.original(ctx, rec.Header)
	if err != nil {
		return err
	}
	_, err = c.record(s, e)
	return err
}
