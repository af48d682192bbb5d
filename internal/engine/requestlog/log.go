//go:build !core

package requestlog

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Log writes the request log of one process. One goroutine owns it.
type Log struct {
	dir     string
	o       Options
	process Process
	encoder encoder

	file   *os.File // nil: the next record begins one
	begun  bool     // the header of the file is written, or in pending
	at     time.Time
	serial int
	size   int64
	synced int64 // offset of the last sync frame

	pending  []byte // encoded, and not written yet, or not because the disk was full
	written  uint64 // requests in the file
	requests uint64 // in pending
	lost     uint64 // never written, and not yet reported in the log
}

// maxPending bounds the memory for records while nothing can be written. Records beyond it are
// lost, and the log reports how many.
const maxPending = 1 << 20

// syncEvery is the distance of sync frames in bytes. So damage costs little more than the bytes that it hits.
const syncEvery = 64 << 10

// Open prepares the log of a process in its directory, and deletes old files. The directory is made
// when there is something to write. With MaxSize 0, Open deletes nothing and nothing is written.
func Open(dir string, o Options, p Process) (*Log, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, o: o, process: p}
	if o.MaxSize == 0 {
		return l, nil
	}
	files, err := list(dir)
	if err != nil {
		return nil, fmt.Errorf("open the request log: %w", err)
	}
	if n := len(files); n > 0 {
		l.serial = files[n-1].serial
	}
	return l, l.prune(files, p.Began)
}

// groupBytes is how much Add gathers before it writes.
const groupBytes = 32 << 10

// Append is Add and Flush.
func (l *Log) Append(r *Request) error { return errors.Join(l.Add(r), l.Flush()) }

// Add takes a request that ended, or one whose end is unknown, for the next Flush. After an error the request is held
// and written with a later one: the caller only has to report the error.
func (l *Log) Add(r *Request) error {
	if l.o.MaxSize == 0 {
		return nil
	}
	now := r.End
	if now.IsZero() {
		now = l.process.Began
	}
	var closed error
	if len(l.pending) == 0 && l.begun && (l.size >= l.o.fileBytes() || now.Sub(l.at) >= l.o.fileAge()) {
		closed = l.finish()
	}
	if !l.begun {
		l.pending = l.encoder.header(l.pending, &l.process, now, int(l.o.fileBytes()/2))
		l.begun, l.at, l.synced, l.written = true, now, 0, 0
	}
	if l.lost > 0 {
		l.pending = l.encoder.lost(l.pending, l.lost)
		l.lost = 0
	}
	if at := l.size + int64(len(l.pending)); at-l.synced >= syncEvery {
		l.pending = l.encoder.sync(l.pending, at, l.written+l.requests)
		l.synced = at
	}
	if r.End.IsZero() {
		l.pending = l.encoder.open(l.pending, r)
	} else {
		l.pending = l.encoder.request(l.pending, r)
	}
	if l.requests++; len(l.pending) >= groupBytes {
		closed = errors.Join(closed, l.Flush())
	}
	return closed
}

// Flush writes what Add has gathered. An error is as that of Add.
func (l *Log) Flush() error {
	if len(l.pending) == 0 {
		return nil
	}
	if l.file == nil {
		if err := l.create(); err != nil {
			return l.hold(err)
		}
	}
	if _, err := l.file.WriteAt(l.pending, l.size); err != nil {
		// A part may have been written.
		return l.hold(errors.Join(err, l.file.Truncate(l.size)))
	}
	l.size += int64(len(l.pending))
	l.written += l.requests
	l.pending, l.requests = l.pending[:0], 0
	return nil
}

// hold keeps records that could not be written, as long as there is room.
func (l *Log) hold(err error) error {
	if len(l.pending) > maxPending {
		l.lost += l.requests
		l.pending, l.requests = nil, 0
		l.begun, l.synced = l.size > 0, min(l.synced, l.size)
	}
	return fmt.Errorf("write the request log: %w", err)
}

// create begins a file, and makes room for it.
func (l *Log) create() error {
	if err := os.MkdirAll(l.dir, 0o750); err != nil {
		return err
	}
	files, err := list(l.dir)
	if err != nil {
		return err
	}
	if err := l.prune(files, l.at); err != nil {
		return err
	}
	f, err := os.OpenFile(path(l.dir, l.serial+1), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	l.file, l.size = f, 0
	l.serial++
	return nil
}

// finish ends the file.
func (l *Log) finish() error {
	l.begun, l.size = false, 0
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("close the request log: %w", err)
	}
	return nil
}

// prune deletes the oldest files: those that are too old, and those that leave no room for another.
func (l *Log) prune(files []file, now time.Time) error {
	total := l.o.fileBytes()
	for _, f := range files {
		total += f.size
	}
	for _, f := range files {
		old := l.o.Keep > 0 && now.Sub(f.written) > l.o.Keep
		if total <= l.o.MaxSize && !old {
			continue
		}
		if err := os.Remove(path(l.dir, f.serial)); err != nil {
			return fmt.Errorf("delete a file of the request log: %w", err)
		}
		total -= f.size
	}
	return nil
}

// Close writes what is left, and ends the log. What cannot be written is lost.
func (l *Log) Close() error { return errors.Join(l.Flush(), l.finish()) }
