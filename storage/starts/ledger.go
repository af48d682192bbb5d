// Package starts is the start ledger: a text file in the data directory of a crawl that has each request before it is
// sent, so that a process that is killed leaves no host unaware of what it may have received. Its format is described
// in storage/FORMAT.md.
package starts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/amble-crawler/amble/storage"
)

// FileName is the name of the start ledger in the data directory.
const FileName = "starts.log"

// Start is one line of the start ledger: a request that is about to be sent.
type Start struct {
	Host    string
	Address string
	At      time.Time
	Delay   time.Duration // in force at the time; negative: no robots.txt was read yet
	Note    string        // of the caller, without white space; may be empty
}

// Uncommitted describes the uncommitted requests that the ledger of an earlier process
// names. Their hosts get a restart hold.
type Uncommitted struct {
	Everyone bool                     // the machine was restarted: any host may have had a request just before
	Hosts    map[string]time.Duration // by host name, the longest delay known; negative: none
	Waits    map[string]Wait          // by host name, the wait that ends last
	End      uint64                   // offset where the next ledger begins
	Died     bool                     // the process did not shut down, and the machine did not end with it
	Ended    bool                     // the process was shutting down: see Ledger.AppendEnd
}

// Read reads the ledger of an earlier process from the committed offset on. If the ledger is missing, damaged or of
// another boot of the machine, Everyone is set, unless the store has never sent a request. If each is not nil, it is
// called for every request that can be read, with the offset of its line.
func Read(dir string, committed uint64, bootID string,
	each func(offset uint64, s Start)) (Uncommitted, error) {
	uncommitted := Uncommitted{Hosts: make(map[string]time.Duration), Waits: make(map[string]Wait),
		End: committed}
	f, err := os.Open(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		uncommitted.Everyone = committed != 0
		return uncommitted, nil
	}
	if err != nil {
		return uncommitted, fmt.Errorf("read start ledger: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return uncommitted, fmt.Errorf("read start ledger: %w", err)
	}
	r := bufio.NewReaderSize(f, 64<<10)
	first, _ := r.ReadSlice('\n') // after an error the header cannot be parsed
	header := string(first)
	base, boot, ok := parseLedgerHeader(header)
	end := base + uint64(info.Size()) - uint64(len(header))
	uncommitted.End = max(committed, end)
	if !ok || committed < base || committed > end {
		uncommitted.Everyone = true
		return uncommitted, nil
	}
	uncommitted.Everyone = boot == "" || boot != bootID
	uncommitted.Ended = ended(f, info.Size())
	uncommitted.Died = !uncommitted.Ended && boot == bootID
	if committed > base {
		if _, err := f.Seek(int64(committed-base)+int64(len(header)), io.SeekStart); err != nil {
			return uncommitted, fmt.Errorf("read start ledger: %w", err)
		}
		r.Reset(f)
	}
	if each == nil {
		each = func(uint64, Start) {}
	}
	return uncommitted, uncommitted.read(r, committed, each)
}

func (d *Uncommitted) read(r *bufio.Reader, offset uint64, each func(uint64, Start)) error {
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil // a torn last line is a request that was never sent
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("read start ledger: %w", err)
		}
		if w, ok := parseWait(string(line)); ok && err == nil {
			d.addWait(w)
			offset += uint64(len(line))
			continue
		}
		if isEnd(string(line)) && err == nil {
			offset += uint64(len(line))
			continue
		}
		start, ok := parseStart(string(line))
		if !ok || err != nil {
			d.Everyone = true // not a line of a ledger: trust none of it
			return nil
		}
		each(offset, start)
		offset += uint64(len(line))
		if old, known := d.Hosts[start.Host]; !known || start.Delay > old {
			d.Hosts[start.Host] = start.Delay
		}
	}
}

const ledgerMagic = "amble-starts-1"

func parseLedgerHeader(line string) (base uint64, boot string, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != ledgerMagic {
		return 0, "", false
	}
	base, err := strconv.ParseUint(fields[1], 10, 62)
	if err != nil {
		return 0, "", false
	}
	if fields[2] == "-" {
		fields[2] = ""
	}
	return base, fields[2], true
}

// parseStart reads a line: time in ms, address, host, delay in ms, and a note where there is one.
func parseStart(line string) (s Start, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 4 && len(fields) != 5 {
		return Start{}, false
	}
	at, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return Start{}, false
	}
	ms, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil || ms < -1 || ms > milliseconds(math.MaxInt64) {
		return Start{}, false
	}
	s = Start{Host: fields[2], Address: fields[1], At: time.UnixMilli(at), Delay: fromMilliseconds(ms)}
	if s.Address == "-" {
		s.Address = ""
	}
	if len(fields) == 5 {
		s.Note = fields[4]
	}
	return s, true
}

// milliseconds converts a duration to milliseconds, rounded up.
func milliseconds(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// fromMilliseconds is the inverse of milliseconds. Too many milliseconds become the longest duration.
func fromMilliseconds(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Ledger is the append-only file that names each request before it is sent. After a process was
// killed between a request and its commit, the next one reads from it which hosts to keep its
// distance from. Lines are written without a sync, which survives the end of the process; the boot
// id shows that the machine was restarted. One goroutine owns a Ledger.
type Ledger struct {
	dir    string
	bootID string
	f      *os.File
	base   uint64 // offset of the file's first line
	header int64
	size   int64
	group  []byte // lines that Add has made
	line   []byte
}

// Open begins a new ledger at offset base, which is Uncommitted.End, and replaces the
// old one. All that the old one says must be committed by then.
func Open(dir, bootID string, base uint64) (*Ledger, error) {
	l := &Ledger{dir: dir, bootID: bootID}
	if err := l.begin(base, nil); err != nil {
		return nil, err
	}
	return l, nil
}

// begin writes a new file with the given lines and replaces the old one.
func (l *Ledger) begin(base uint64, lines []byte) error {
	boot := l.bootID
	if boot == "" {
		boot = "-"
	}
	path := filepath.Join(l.dir, FileName)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o640)
	if err != nil {
		return fmt.Errorf("begin start ledger: %w", spaceError(err))
	}
	header := fmt.Appendf(nil, "%s %d %s\n", ledgerMagic, base, boot)
	_, err = f.Write(append(header[:len(header):len(header)], lines...))
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		err = errors.Join(err, f.Close(), os.Remove(path+".new"))
		return fmt.Errorf("begin start ledger: %w", spaceError(err))
	}
	if l.f != nil {
		err = l.f.Close()
	}
	l.f, l.base, l.header, l.size = f, base, int64(len(header)), int64(len(header)+len(lines))
	return err
}

// Offset returns the offset of the end of the last line, those of Add included.
func (l *Ledger) Offset() uint64 { return l.base + uint64(l.size-l.header) + uint64(len(l.group)) }

// Append writes a line and returns the offset of its beginning. After an error the request must not
// be sent, and the file is unchanged.
func (l *Ledger) Append(s Start) (offset uint64, err error) {
	offset = l.Add(s)
	return offset, l.Flush()
}

// Add makes a line for the next Flush, before which the request must not be sent, and returns the offset of its
// beginning.
func (l *Ledger) Add(s Start) (offset uint64) {
	offset = l.Offset()
	delay := int64(-1)
	if s.Delay >= 0 {
		delay = milliseconds(s.Delay)
	}
	address := s.Address
	if address == "" {
		address = "-"
	}
	b := strconv.AppendInt(l.group, s.At.UnixMilli(), 10)
	b = append(append(append(append(append(b, ' '), address...), ' '), s.Host...), ' ')
	b = strconv.AppendInt(b, delay, 10)
	if s.Note != "" {
		b = append(append(b, ' '), s.Note...)
	}
	l.group = append(b, '\n')
	return offset
}

// Flush writes the lines of Add at once. After an error none of their requests must be sent, and the file is unchanged.
func (l *Ledger) Flush() error {
	lines := l.group
	l.group = l.group[:0]
	return l.write(lines)
}

// write appends a line.
func (l *Ledger) write(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	if _, err := l.f.WriteAt(line, l.size); err != nil {
		// The count that comes with the error does not include a part that was written.
		err = errors.Join(err, l.f.Truncate(l.size))
		return fmt.Errorf("append to start ledger: %w", spaceError(err))
	}
	l.size += int64(len(line))
	return nil
}

// ledgerRotate is the size from which Trim begins a new file.
const ledgerRotate = 4 << 20

// Trim drops the lines before a committed offset when the file has become large. The other lines move to a new file.
func (l *Ledger) Trim(committed uint64) error {
	at := int64(committed-l.base) + l.header
	if l.size < ledgerRotate || committed < l.base || at < l.size/2 || at > l.size {
		return nil
	}
	rest := make([]byte, l.size-at)
	if _, err := l.f.ReadAt(rest, at); err != nil {
		return fmt.Errorf("trim start ledger: %w", err)
	}
	return l.begin(committed, rest)
}

// Close closes the file, which stays for the next process.
func (l *Ledger) Close() error { return l.f.Close() }

// Wait is a line of the start ledger between those of requests: a wait that a host demanded in a
// response which may not be committed yet.
type Wait struct {
	Host string
	At   time.Time     // when the response was complete
	Wait time.Duration // from then on
}

const waitMagic = "wait"

// AppendWait writes a line. After an error the file is unchanged.
func (l *Ledger) AppendWait(w Wait) error {
	lost := w.Wait%time.Millisecond + time.Duration(w.At.Nanosecond())%time.Millisecond
	// The end is rounded up, since the time loses its fraction.
	ms := int64(w.Wait/time.Millisecond) + milliseconds(lost)
	b := strconv.AppendInt(append(l.line[:0], waitMagic+" "...), w.At.UnixMilli(), 10)
	b = append(append(append(b, ' '), w.Host...), ' ')
	l.line = append(strconv.AppendInt(b, ms, 10), '\n')
	return l.write(l.line)
}

// parseWait parses what AppendWait writes.
func parseWait(line string) (w Wait, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 4 || fields[0] != waitMagic {
		return Wait{}, false
	}
	at, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return Wait{}, false
	}
	ms, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil || ms <= 0 {
		return Wait{}, false
	}
	return Wait{Host: fields[2], At: time.UnixMilli(at), Wait: fromMilliseconds(ms)}, true
}

// addWait keeps the wait of each host that ends last.
func (d *Uncommitted) addWait(w Wait) {
	if old, known := d.Waits[w.Host]; !known || w.At.Add(w.Wait).After(old.At.Add(old.Wait)) {
		d.Waits[w.Host] = w
	}
}

const endMagic = "end"

// AppendEnd records that no more requests begin, because the process is shutting down: whatever ends it from here on
// is not the fault of a request that is out. After an error the file is unchanged.
func (l *Ledger) AppendEnd(at time.Time) error {
	l.line = append(strconv.AppendInt(append(l.line[:0], endMagic+" "...), at.UnixMilli(), 10), '\n')
	return l.write(l.line)
}

// isEnd reports whether a line is that of AppendEnd.
func isEnd(line string) bool {
	at, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), endMagic+" ")
	_, err := strconv.ParseInt(at, 10, 64)
	return ok && err == nil
}

// ledgerTail is the size of the end of a ledger that is searched for the line of AppendEnd, in
// bytes. Only waits follow that line, of requests that were in flight.
const ledgerTail = 64 << 10

// ended reports whether the last line that is not a wait is that of AppendEnd.
func ended(f *os.File, size int64) bool {
	tail := make([]byte, min(size, ledgerTail))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return false
	}
	lines := bytes.SplitAfter(tail, []byte("\n"))
	for i := len(lines) - 2; i >= 0; i-- { // the last one is empty, or torn
		if _, waits := parseWait(string(lines[i])); !waits {
			return isEnd(string(lines[i]))
		}
	}
	return false
}

// spaceError wraps an error that goes away when there is room again with storage.ErrNoSpace.
func spaceError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
	}
	return err
}
