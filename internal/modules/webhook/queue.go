//go:build !core

package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/system"
)

// Names of files beside those of the queue.
const (
	committedFile = "webhook.committed" // how far the queue is committed
	cursorFile    = "webhook.cursor"    // how far the receiver has taken it
)

// place is a place in the queue: a byte of a file.
type place struct {
	Serial int   `json:"serial"` // of the file; 0: before all files
	Offset int64 `json:"offset"`
}

// sink is the sink of the format.
type sink struct {
	*archive.Series
	dir     string
	most    int64 // bytes of the queue
	appends int
}

// ErrFull says that the queue is full: the receiver takes less than the crawl brings.
var ErrFull = errors.New("the queue of the webhook is full")

// sizeEvery is how often the size of the queue is found out, in records.
const sizeEvery = 64

// Append implements archive.Sink. While the queue is full nothing is committed.
func (s *sink) Append(r *archive.Record, now time.Time) error {
	if s.appends%sizeEvery == 0 {
		if n, err := queued(s.dir); err == nil && n >= s.most {
			return fmt.Errorf("%w: %d bytes wait for the receiver, and output.webhook.queue allows %d", ErrFull, n,
				s.most)
		}
	}
	err := s.Series.Append(r, now)
	if err == nil {
		s.appends++
	}
	return err
}

// queued returns the bytes of the files of the queue.
func queued(dir string) (n int64, err error) {
	files, err := list(dir)
	for _, f := range files {
		if info, err := os.Stat(f.path); err == nil {
			n += info.Size()
		}
	}
	return n, err
}

// Restore implements archive.Sink.
func (s *sink) Restore(m *archive.Mark) error {
	if err := s.Series.Restore(m); err != nil {
		return err
	}
	return s.publish()
}

// Committed implements archive.Sink: what was synced last is committed.
func (s *sink) Committed() error {
	return errors.Join(s.Series.Committed(), s.publish())
}

// publish writes how far the queue is committed.
func (s *sink) publish() error {
	m, is := s.Series.Mark()
	if !is {
		return nil
	}
	var at archive.FileMark
	if err := json.Unmarshal([]byte(m), &at); err != nil {
		return fmt.Errorf("webhook: mark %s: %w", m, err)
	}
	serial, _, _, ok := naming().Parse(at.File)
	if !ok {
		return nil // nothing was written yet
	}
	if err := os.WriteFile(filepath.Join(s.dir, committedFile), encode(place{serial, at.Length}), 0o640); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// encode returns a place with a sum: a file that is being written, or that a crash has cut, is none.
func encode(p place) []byte {
	text := fmt.Sprintf("%020d %020d", p.Serial, p.Offset)
	return fmt.Appendf(nil, "%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

// committed returns how far a queue is committed; false: it is not known now.
func committed(dir string) (p place, known bool) {
	text, err := os.ReadFile(filepath.Join(dir, committedFile))
	if err != nil {
		return p, false
	}
	_, err = fmt.Sscanf(string(text), "%d %d", &p.Serial, &p.Offset)
	return p, err == nil && string(encode(p)) == string(text)
}

// queueFile is a file of a queue.
type queueFile struct {
	serial   int
	path     string
	complete bool
}

// list returns the files of a queue in their order.
func list(dir string) (files []queueFile, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		serial, _, suffix, ok := naming().Parse(e.Name())
		if ok && (suffix == "" || suffix == archive.SuffixOpen) {
			files = append(files, queueFile{serial, filepath.Join(dir, e.Name()), suffix == ""})
		}
	}
	slices.SortFunc(files, func(a, b queueFile) int { return a.serial - b.serial })
	return files, nil
}

// cursor is how far the receiver has taken a queue, and the name of the queue in ids.
type cursor struct {
	place
	Queue string `json:"queue"`
}

// readCursor reads the cursor of a queue; a new queue has a new name.
func readCursor(dir, name string) (c cursor, err error) {
	text, err := os.ReadFile(filepath.Join(dir, cursorFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Queue = name
		return c, c.save(dir)
	case err == nil:
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		err = fmt.Errorf("webhook: read %s: %w", filepath.Join(dir, cursorFile), err)
	}
	return c, err
}

// save makes the cursor durable.
func (c *cursor) save(dir string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, cursorFile)
	if err = system.WriteFile(path, append(text, '\n')); err != nil {
		return fmt.Errorf("webhook: write %s: %w", path, err)
	}
	return nil
}
