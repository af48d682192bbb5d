//go:build !core

package requestlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"time"
)

// Query selects the files to read.
type Query struct {
	Since        time.Time // files that end before it are left out; requests before it may still come
	LedgerOffset uint64    // files whose requests all have lower offsets in the start ledger are left out
}

// Summary says how much was read, and what could not be read.
type Summary struct {
	Files    int
	Bytes    int64
	Requests uint64
	Lost     uint64   // requests that could not be written, as the log reports
	Damaged  []Damage // parts of files that cannot be read
	// Unfinished is the length in bytes of an incomplete record at the end of the newest file: it
	// is being written, or was at a crash.
	Unfinished int64
}

// Damage is a part of a file that cannot be read.
type Damage struct {
	File     string
	Offset   int64 // of its begin
	Bytes    int64 // that cannot be read
	Requests int64 // that cannot be read, including later ones that refer to it; -1: not known
}

// Read calls each for every request, in the order in which they ended. A request with an unknown
// end comes where the next process begins. The Request, and what it points to, must not be changed,
// and the Request itself is valid only during the call. Files may be written and deleted meanwhile.
// An error of each ends the reading and is returned. A directory that does not exist is an empty
// log.
func Read(dir string, q Query, each func(*Request) error) (Summary, error) {
	return read(dir, q, make(map[string]int), each)
}

// read is Read with the numbers of clocks, by starts of machines.
func read(dir string, q Query, clocks map[string]int, each func(*Request) error) (Summary, error) {
	var s Summary
	files, err := list(dir)
	if err != nil {
		return s, fmt.Errorf("read the request log: %w", err)
	}
	headers := make([]*header, len(files))
	first := 0
	for i := range files {
		if headers[i], err = readHeader(path(dir, files[i].serial)); err != nil {
			return s, fmt.Errorf("read the request log: %w", err)
		}
		if h := headers[i]; h != nil &&
			(!q.Since.IsZero() && !h.begun.After(q.Since) || h.ledgerBase <= q.LedgerOffset && q.LedgerOffset > 0) {
			first = i
		}
	}
	for i := first; i < len(files); i++ {
		if err := s.readFile(path(dir, files[i].serial), i == len(files)-1, clocks, each); err != nil {
			return s, fmt.Errorf("read the request log: %w", err)
		}
	}
	return s, nil
}

// readHeader returns nil for a file that has no header, or that was deleted.
func readHeader(name string) (*header, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	payload, err := newFrames(name, f).next()
	if err != nil {
		return nil, errUnlessEnd(err)
	}
	h, ok := decodeHeader(payload)
	if !ok {
		return nil, nil
	}
	return h, nil
}

// errUnlessEnd keeps the errors of reading a disk, not those of what was read.
func errUnlessEnd(err error) error {
	if err == io.EOF || errors.Is(err, errDamaged) || errors.Is(err, errIncomplete) {
		return nil
	}
	return err
}

// readFile reads one file. In the last one the writer may be in the middle of a frame: that is no
// damage.
func (s *Summary) readFile(name string, last bool, clocks map[string]int, each func(*Request) error) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	s.Files++
	return s.read(newFrames(name, f), last, clocks, each)
}

func (s *Summary) read(r *frames, last bool, clocks map[string]int, each func(*Request) error) error {
	d := newFileDecoder(clocks)
	for {
		at := r.at
		payload, err := r.next()
		if err == nil && !d.frame(payload) {
			err = errDamaged
		}
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errDamaged), errors.Is(err, errIncomplete):
			if more, err := s.skip(r, d, at, last && errors.Is(err, errIncomplete)); !more {
				return err
			}
			continue
		case err != nil:
			return err
		}
		s.Bytes += r.at - at
		if err := s.take(d, each); err != nil {
			return err
		}
	}
}

// take passes on the request of a frame.
func (s *Summary) take(d *fileDecoder, each func(*Request) error) error {
	s.Lost += d.takeLost()
	if n := len(s.Damaged); d.unknown && n > 0 && s.Damaged[n-1].Requests >= 0 {
		s.Damaged[n-1].Requests++
	}
	if !d.ready {
		return nil
	}
	s.Requests++
	return each(&d.request)
}

// skip skips a damaged part from an offset on. It reports whether the file can be read again behind
// it.
func (s *Summary) skip(r *frames, d *fileDecoder, at int64, unfinished bool) (more bool, err error) {
	damage := Damage{File: r.name, Offset: at, Requests: -1}
	var sync syncFields
	if d.version > 1 { // else it has no sync frame
		if more, err = r.findSync(at+1, &sync); err != nil {
			return false, err
		}
	}
	if more {
		damage.Bytes, damage.Requests = r.at-at, int64(d.resume(&sync))
	} else {
		end, err := r.f.Seek(0, io.SeekEnd)
		if err != nil {
			return false, err
		}
		damage.Bytes = end - at
	}
	if unfinished && !more {
		s.Unfinished = damage.Bytes
		return false, nil
	}
	s.Damaged = append(s.Damaged, damage)
	return more, nil
}

// Errors of reading a frame.
var (
	errDamaged    = errors.New("damaged frame")
	errIncomplete = errors.New("the file ends within a frame")
)

// frames reads frame by frame.
type frames struct {
	name    string
	f       io.ReadSeeker
	r       *bufio.Reader
	at      int64 // offset of the next frame
	payload []byte
}

func newFrames(name string, f io.ReadSeeker) *frames {
	return &frames{name: name, f: f, r: bufio.NewReaderSize(f, 64<<10)}
}

// next returns the next payload. It is not empty, and valid until the next call. io.EOF: there is
// none.
func (f *frames) next() ([]byte, error) {
	b, err := f.r.Peek(binary.MaxVarintLen64)
	n, width := binary.Uvarint(b)
	switch {
	case width == 0 && err != nil && err != io.EOF:
		return nil, err
	case len(b) == 0:
		return nil, io.EOF
	case width == 0:
		return nil, errIncomplete
	case width < 0, n == 0, n > maxPayload:
		return nil, errDamaged
	}
	if _, err := f.r.Discard(width); err != nil {
		return nil, err
	}
	need := int(n) + checksumBytes
	if cap(f.payload) < need {
		f.payload = make([]byte, need, max(2*need, 4<<10))
	}
	f.payload = f.payload[:need]
	if _, err := io.ReadFull(f.r, f.payload); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, errIncomplete
	} else if err != nil {
		return nil, err
	}
	payload := f.payload[:n]
	if !sumsUp(f.payload) {
		return nil, errDamaged
	}
	f.at += int64(width + need)
	return payload, nil
}

// sumsUp checks the checksum after a payload.
func sumsUp(b []byte) bool {
	n := len(b) - checksumBytes
	return crc32.Checksum(b[:n], castagnoli) == binary.LittleEndian.Uint32(b[n:])
}

// findSync goes to the first sync frame from an offset on. Such a frame is short, so the time for
// that does not depend on the content of the file. The frame contains its own offset, so the
// content of a robots.txt cannot pass for one.
func (f *frames) findSync(from int64, s *syncFields) (found bool, err error) {
	if err := f.seek(from); err != nil {
		return false, err
	}
	for ; ; f.at++ {
		b, err := f.r.Peek(maxSync)
		if err != nil && err != io.EOF || len(b) == 0 {
			return false, errUnlessEnd(err)
		}
		if *s = (syncFields{}); decodeSync(b, s) && s.at == uint64(f.at) {
			return true, f.seek(f.at)
		}
		if _, err := f.r.Discard(1); err != nil {
			return false, err
		}
	}
}

func (f *frames) seek(at int64) error {
	f.at = at
	_, err := f.f.Seek(at, io.SeekStart)
	f.r.Reset(f.f)
	return err
}

// maxSync is the length of the longest sync frame: its length, its type, six varints and the
// checksum.
const maxSync = 1 + 1 + 6*binary.MaxVarintLen64 + checksumBytes

// decodeSync reads a sync frame at the start of b.
func decodeSync(b []byte, s *syncFields) bool {
	if len(b) < 2 || b[1] != frameSync {
		return false
	}
	end := 1 + int(b[0]) + checksumBytes
	return b[0] < 0x80 && end <= len(b) && sumsUp(b[1:end]) && decode(b[1:end-checksumBytes], s)
}
