package storage

import (
	"strconv"
	"strings"
	"time"
)

// Wait is a line of the start ledger that stands behind those of requests: what a host asked for in an answer that no
// commit may know of yet.
type Wait struct {
	Host string
	At   time.Time     // when the answer was there
	Wait time.Duration // from then on
}

const waitMagic = "wait"

// AppendWait writes a line. After an error the file is as it was.
func (l *Ledger) AppendWait(w Wait) error {
	lost := w.Wait%time.Millisecond + time.Duration(w.At.Nanosecond())%time.Millisecond
	// the end is rounded up, since the time loses its fraction
	ms := int64(w.Wait/time.Millisecond) + milliseconds(lost)
	b := strconv.AppendInt(append(l.line[:0], waitMagic+" "...), w.At.UnixMilli(), 10)
	b = append(append(append(b, ' '), w.Host...), ' ')
	l.line = append(strconv.AppendInt(b, ms, 10), '\n')
	return l.write(l.line)
}

// parseWait reads what AppendWait writes.
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
func (d *Debt) addWait(w Wait) {
	if old, known := d.Waits[w.Host]; !known || w.At.Add(w.Wait).After(old.At.Add(old.Wait)) {
		d.Waits[w.Host] = w
	}
}
