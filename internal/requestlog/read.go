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

// Query says what to read.
type Query struct {
	Since time.Time // files that end before it are left out; requests before it may still come
	Place uint64    // files whose requests all stand before this place of the start ledger are left out
}

// Summary is what was read.
type Summary struct {
	Files    int
	Bytes    int64
	Requests uint64
	Lost     uint64   // requests that the log says could not be written
	Damaged  []Damage // where files end early
}

// Damage is a file that cannot be read to its end.
type Damage struct {
	File  string
	Bytes int64 // that cannot be read
}

// Read calls each for every request, in the order in which they ended; those whose end nobody saw come where the next process
// begins. The Request, and what it points to, must not be changed, and the Request itself is valid only during the call. Files may be written and dropped meanwhile. An
// error of each ends the reading and comes through. A directory that does not exist is an empty log.
func Read(dir string, q Query, each func(*Request) error) (Summary, error) {
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
		if h := headers[i]; h != nil && (!q.Since.IsZero() && !h.begun.After(q.Since) || h.place <= q.Place && q.Place > 0) {
			first = i
		}
	}
	clocks := make(map[string]int)
	for i := first; i < len(files); i++ {
		if err := s.readFile(path(dir, files[i].serial), i == len(files)-1, clocks, each); err != nil {
			return s, fmt.Errorf("read the request log: %w", err)
		}
	}
	return s, nil
}

// readHeader returns nil for a file that has none, or that was dropped.
func readHeader(name string) (*header, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &frames{r: bufio.NewReader(f)}
	payload, err := r.next()
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
	if errors.Is(err, io.EOF) || errors.Is(err, errDamaged) {
		return nil
	}
	return err
}

// readFile reads one file. In the last one the writer may be in the middle of a frame: that is no damage.
func (s *Summary) readFile(name string, last bool, clocks map[string]int, each func(*Request) error) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := &frames{r: bufio.NewReaderSize(f, 256<<10)}
	d := newFileDecoder(clocks)
	good := int64(0)
	for {
		payload, err := r.next()
		if err == nil && !d.frame(payload) {
			err = errDamaged
		}
		if err != nil {
			if err = errUnlessEnd(err); err == nil {
				s.note(f, name, good, last)
			}
			return err
		}
		good = r.read
		s.Lost += d.takeLost()
		if d.ready {
			d.ready = false
			s.Requests++
			if err := each(&d.request); err != nil {
				return err
			}
		}
	}
}

// note counts a file that was read up to a length.
func (s *Summary) note(f *os.File, name string, good int64, last bool) {
	s.Files++
	s.Bytes += good
	if info, err := f.Stat(); err == nil && info.Size() > good && !last {
		s.Damaged = append(s.Damaged, Damage{File: name, Bytes: info.Size() - good})
	}
}

// errDamaged says that a frame is not what it should be.
var errDamaged = errors.New("damaged frame")

// frames reads frame by frame.
type frames struct {
	r       *bufio.Reader
	read    int64
	payload []byte
}

// next returns the next payload, which is valid until the one after it is read. io.EOF and io.ErrUnexpectedEOF: there is none, or not all of it.
func (f *frames) next() ([]byte, error) {
	n, err := binary.ReadUvarint(f.r)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, io.EOF
		}
		return nil, errDamaged
	}
	if n == 0 || n > maxPayload {
		return nil, errDamaged
	}
	need := int(n) + checksumBytes
	if cap(f.payload) < need {
		f.payload = make([]byte, need, max(2*need, 4<<10))
	}
	f.payload = f.payload[:need]
	if _, err := io.ReadFull(f.r, f.payload); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		return nil, err
	}
	payload := f.payload[:n]
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(f.payload[n:]) {
		return nil, errDamaged
	}
	f.read += int64(len(binary.AppendUvarint(nil, n)) + need)
	return payload, nil
}
