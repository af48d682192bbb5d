package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
)

// Options bound the memory of contents.
type Options struct {
	// Dir is the directory of the files. Open creates it, and removes the files that an earlier
	// process left there.
	Dir string
	// Above is the size in bytes above which a content is in a file.
	Above int64
	// Budget is the number of bytes that all contents together may hold in memory.
	Budget int64
}

// DefaultOptions returns 1 MiB for a content and 64 MiB for all of them. The caller sets Dir.
func DefaultOptions() Options { return Options{Above: 1 << 20, Budget: 64 << 20} }

// Validate returns an error that names the first invalid option, or nil.
func (o Options) Validate() error {
	switch {
	case o.Dir == "":
		return fmt.Errorf("spool: Dir is empty")
	case o.Above < HeadBytes:
		return fmt.Errorf("spool: Above %d: must be at least %d", o.Above, HeadBytes)
	case o.Budget < 0:
		return fmt.Errorf("spool: Budget %d: must not be negative", o.Budget)
	}
	return nil
}

// Pool is a budget of memory and a directory for contents beyond it. It is safe for concurrent use.
// A nil Pool has no bounds and no directory: all its contents stay in memory.
type Pool struct {
	o            Options
	held         atomic.Int64
	files        atomic.Int64
	free         freeList
	reservations reservations
}

// pattern is the name of a file for the moment in which it has a name.
const pattern = "content-*.tmp"

// Open prepares the directory, which must belong to this process alone.
func Open(o Options) (*Pool, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(escape(o.Dir), pattern))
	if err != nil {
		return nil, fmt.Errorf("spool: list %s: %w", o.Dir, err)
	}
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
	}
	return &Pool{o: o}, nil
}

// escape quotes the characters that filepath.Glob would read as a pattern.
func escape(dir string) string {
	if runtime.GOOS == "windows" {
		return dir // its separator is the escape character elsewhere
	}
	quoted := make([]byte, 0, len(dir))
	for i := range len(dir) {
		switch dir[i] {
		case '*', '?', '[', '\\':
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, dir[i])
	}
	return string(quoted)
}

// Held returns the number of bytes of the budget in use.
func (p *Pool) Held() int64 {
	if p == nil {
		return 0
	}
	return p.held.Load()
}

// Files returns the number of contents in a file.
func (p *Pool) Files() int64 {
	if p == nil {
		return 0
	}
	return p.files.Load()
}

// reserve takes n bytes of the budget. It returns false if they are not available.
func (p *Pool) reserve(n int64) bool {
	if p == nil {
		return true
	}
	if p.held.Add(n) > p.o.Budget {
		p.held.Add(-n)
		return false
	}
	return true
}

func (p *Pool) release(n int64) {
	if p != nil {
		p.held.Add(-n)
	}
}

// memory returns empty memory with room for n bytes, or false if a content of n bytes may not be in
// memory.
func (p *Pool) memory(n int64) ([]byte, bool) {
	if p == nil {
		return make([]byte, 0, n), true
	}
	room, at := roomOf(n)
	if room > p.o.Above { // no content may be that large
		room, at = n, len(p.free.sizes)
	}
	if !p.fits(n) || !p.reserve(room) {
		return nil, false
	}
	return p.free.take(room, at), true
}

// recycle returns memory for later contents. Nobody may hold a part of it any more.
func (p *Pool) recycle(b []byte, held int64) {
	if p == nil {
		return
	}
	p.release(held)
	if held > 0 {
		p.free.put(b)
	}
}

// fits reports whether a content of n bytes may be in memory.
func (p *Pool) fits(n int64) bool { return p == nil || n <= p.o.Above }

// create makes a file. If the system can unlink an open file, create does, so nothing can be left
// behind.
func (p *Pool) create() (*os.File, error) {
	f, err := os.CreateTemp(p.o.Dir, pattern)
	if err != nil {
		return nil, &Error{err}
	}
	if runtime.GOOS != "windows" {
		if err := os.Remove(f.Name()); err != nil {
			_ = f.Close()
			return nil, &Error{err}
		}
	}
	p.files.Add(1)
	return f, nil
}

// discard closes a file of create.
func (p *Pool) discard(f *os.File) error {
	p.files.Add(-1)
	err := f.Close()
	if runtime.GOOS == "windows" {
		_ = os.Remove(f.Name())
	}
	return err
}

// Error is a failure of the directory or of a file in it, such as a full disk.
type Error struct{ Err error }

// Error names the file and the cause.
func (e *Error) Error() string { return "spool: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
