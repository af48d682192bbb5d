package storage

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

const endMagic = "end"

// AppendEnd records that no more requests begin, because the process is shutting down: whatever
// ends it from here on is not the fault of a request that is out. After an error the file is
// unchanged.
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
