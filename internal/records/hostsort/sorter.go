package hostsort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

const (
	// MaxRecord is the largest size of a record, in bytes.
	MaxRecord = 32 << 10
	// maxRuns is the most runs of a sorter. The merge has a buffer of readBytes for each.
	maxRuns = 64
	// ownBytes is the memory that a sorter has besides the room's, so that it can always take
	// records.
	ownBytes = 2 * chunkBytes
	// chunkBytes is the size of the pieces in which memory is allocated and reserved.
	chunkBytes = 1 << chunkBits
	chunkBits  = 16
	// hostBytes is the memory of a host without its name.
	hostBytes = 128
	linkBytes = 4
)

// Sorter gathers records. It belongs to one goroutine.
type Sorter struct {
	room     *Workspace
	inMemory bool
	full     bool
	count    int // records

	hosts  map[string]int32 // indexes into groups
	groups []group
	chunks [][]byte // of records; the last is not full
	free   [][]byte // chunks without records

	used     int64 // bytes of memory
	reserved int64 // of these, in the room
	onDisk   int64 // bytes reserved in the room
	runs     []*spool.Content
}

// group is the records of one host: a list through the chunks. A record is located by its chunk and
// its offset in it plus one, and begins with the location of the next one; 0 is none.
type group struct {
	host        string
	first, last uint32
	count       int
}

// NewSorter returns an empty sorter. If inMemory is set, it writes no files.
func (r *Workspace) NewSorter(inMemory bool) *Sorter {
	return &Sorter{room: r, inMemory: inMemory, hosts: make(map[string]int32)}
}

// Full reports whether the sorter has used up what it may hold. The records should be taken out now.
func (s *Sorter) Full() bool { return s.full }

// Add adds a record, which it copies. The error is that of writing a run; the record is then lost.
func (s *Sorter) Add(host string, record []byte) error {
	if len(record) > MaxRecord {
		return fmt.Errorf("sort by host: a record of %d bytes", len(record))
	}
	i, known := s.hosts[host]
	runs := len(s.runs)
	if err := s.makeRoom(s.cost(host, len(record), known)); err != nil {
		return err
	}
	known = known && len(s.runs) == runs // a run takes the hosts along
	s.used += s.cost(host, len(record), known)
	at := s.append(record)
	if !known {
		i = int32(len(s.groups))
		name := strings.Clone(host) // so that the URL that contains it can be freed
		s.hosts[name] = i
		s.groups = append(s.groups, group{host: name, first: at})
	} else {
		binary.LittleEndian.PutUint32(s.at(s.groups[i].last), at)
	}
	s.groups[i].last = at
	s.groups[i].count++
	s.count++
	return nil
}

// cost returns the memory that one more record takes. known says that its host has records.
func (s *Sorter) cost(host string, size int, known bool) (n int64) {
	if !s.fits(size) {
		n = chunkBytes
	}
	if !known {
		n += hostBytes + int64(len(host))
	}
	return n
}

// fits reports whether the last chunk has room for a record.
func (s *Sorter) fits(size int) bool {
	if len(s.chunks) == 0 {
		return false
	}
	last := s.chunks[len(s.chunks)-1]
	return len(last)+linkBytes+binary.MaxVarintLen32+size < cap(last)
}

// append copies a record behind the others and returns its location.
func (s *Sorter) append(record []byte) uint32 {
	if !s.fits(len(record)) {
		s.chunks = append(s.chunks, s.newChunk())
	}
	i := len(s.chunks) - 1
	chunk := &s.chunks[i]
	at := uint32(i<<chunkBits|len(*chunk)) + 1
	*chunk = append(*chunk, 0, 0, 0, 0)
	*chunk = append(binary.AppendUvarint(*chunk, uint64(len(record))), record...)
	return at
}

func (s *Sorter) newChunk() []byte {
	if n := len(s.free); n > 0 {
		chunk := s.free[n-1]
		s.free = s.free[:n-1]
		return chunk[:0]
	}
	return make([]byte, 0, chunkBytes)
}

// at returns the bytes from a location on.
func (s *Sorter) at(location uint32) []byte {
	location--
	return s.chunks[location>>chunkBits][location&(chunkBytes-1):]
}

// makeRoom makes room for n more bytes in memory: it reserves them, or writes a run. If it can do
// neither, the sorter is full and takes them all the same.
func (s *Sorter) makeRoom(n int64) error {
	if s.reserve(n) {
		return nil
	}
	if s.inMemory || s.full || len(s.runs) == maxRuns || !s.room.mayWrite() || !s.room.disk.take(s.used) {
		s.full = true
		return nil
	}
	run, err := s.writeRun()
	if err != nil {
		s.room.disk.release(s.used)
		if isFullDisk(err) {
			s.full = true // what is in memory goes on without a file
			return nil
		}
		return fmt.Errorf("sort by host: %w", err)
	}
	s.onDisk += s.used
	s.runs = append(s.runs, run)
	s.forget()
	return nil
}

func isFullDisk(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// reserve reserves memory for n more bytes. It returns false if the room has none.
func (s *Sorter) reserve(n int64) bool {
	for s.used+n > s.reserved+ownBytes {
		if !s.room.memory.take(chunkBytes) {
			return false
		}
		s.reserved += chunkBytes
	}
	return true
}

// forget drops the records in memory. It keeps the memory for the next ones.
func (s *Sorter) forget() {
	s.free = append(s.free, s.chunks...)
	s.chunks, s.groups, s.used = s.chunks[:0], nil, 0
	s.hosts = make(map[string]int32)
}

// releaseMemory drops the records in memory, and returns the memory to the room.
func (s *Sorter) releaseMemory() {
	s.forget()
	s.free = nil
	s.room.memory.release(s.reserved)
	s.reserved = 0
}

// sorted returns the groups in memory in order, with the names of their hosts reversed.
func (s *Sorter) sorted() []group {
	groups := slices.Clone(s.groups)
	for i := range groups {
		groups[i].host = weburl.ReverseHost(groups[i].host)
	}
	slices.SortFunc(groups, func(a, b group) int { return strings.Compare(a.host, b.host) })
	return groups
}

// writeRun writes the records in memory to a file.
func (s *Sorter) writeRun() (*spool.Content, error) {
	w := newRunWriter(s.room.pool)
	memory := memorySource{sorter: s, groups: s.sorted()}
	for {
		host, count, err := memory.next()
		if err != nil { // the end: memory has no other error
			return w.content()
		}
		w.group(host, count)
		for range count {
			record, _ := memory.record()
			w.record(record)
		}
	}
}

// Reset drops all records, and releases memory and files. The sorter is empty again.
func (s *Sorter) Reset() error {
	s.releaseMemory()
	s.room.disk.release(s.onDisk)
	s.onDisk, s.full, s.count = 0, false, 0
	var errs []error
	for _, run := range s.runs {
		errs = append(errs, run.Close())
	}
	s.runs = nil
	return errors.Join(errs...)
}
