package spool

import (
	"io"
	"os"
)

const (
	// HeadBytes is how many bytes at the start of a content are always in memory.
	HeadBytes = 4 << 10
	// copyBytes is the buffer between a reader and a file.
	copyBytes = 32 << 10
)

// Writer collects a content. It belongs to one goroutine. It ends with Content or with Discard;
// only these release what it holds.
type Writer struct {
	pool *Pool
	mem  []byte   // everything while file is nil, else the head
	file *os.File // nil: in memory
	size int64
	held int64 // of the pool's budget
}

// NewWriter returns a writer with room for size bytes, which is a guess.
func (p *Pool) NewWriter(size int64) *Writer {
	w := &Writer{pool: p}
	if size > 0 {
		if b, ok := p.memory(size); ok {
			w.mem, w.held = b, int64(cap(b))
		}
	}
	return w
}

// Size returns the number of bytes so far.
func (w *Writer) Size() int64 { return w.size }

// Write appends p. An error is an *Error; the content may then be incomplete.
func (w *Writer) Write(p []byte) (int, error) {
	if w.file == nil {
		if fits, err := w.room(len(p)); err != nil {
			return 0, err
		} else if fits {
			w.mem = append(w.mem, p...)
			w.size += int64(len(p))
			return len(p), nil
		}
	}
	return w.toFile(p)
}

// ReadFrom appends the bytes of r, to its end. An error of the file is an *Error, any other error
// comes from r.
func (w *Writer) ReadFrom(r io.Reader) (n int64, err error) {
	begin := w.size
	for w.file == nil {
		fits := len(w.mem) < cap(w.mem)
		if !fits {
			if fits, err = w.room(1); err != nil {
				return w.size - begin, err
			}
		}
		if !fits {
			break
		}
		n, err := r.Read(w.mem[len(w.mem):cap(w.mem)])
		w.mem = w.mem[:len(w.mem)+n]
		w.size += int64(n)
		if err == io.EOF {
			return w.size - begin, nil
		} else if err != nil {
			return w.size - begin, err
		}
	}
	buf := make([]byte, copyBytes)
	for {
		n, err := r.Read(buf)
		if _, failed := w.toFile(buf[:n]); failed != nil {
			return w.size - begin, failed
		}
		if err == io.EOF {
			return w.size - begin, nil
		} else if err != nil {
			return w.size - begin, err
		}
	}
}

// room makes room in memory for n more bytes. If there is none, it moves the content to a file and
// returns false.
func (w *Writer) room(n int) (bool, error) {
	need := int64(len(w.mem) + n)
	have := int64(cap(w.mem))
	if need <= have && w.pool.fits(need) {
		return true, nil
	}
	if w.pool.fits(need) {
		more := max(need, 2*have, HeadBytes)
		if !w.pool.fits(more) {
			more = w.pool.o.Above
		}
		if grown, ok := w.pool.memory(more); ok {
			grown = append(grown, w.mem...)
			w.pool.recycle(w.mem, w.held)
			w.mem, w.held = grown, int64(cap(grown))
			return true, nil
		}
	}
	return false, w.spill()
}

// spill moves the content to a file.
func (w *Writer) spill() error {
	f, err := w.pool.create()
	if err != nil {
		return err
	}
	if _, err := f.Write(w.mem); err != nil {
		_ = w.pool.discard(f)
		return &Error{err}
	}
	w.file = f
	head := append(make([]byte, 0, HeadBytes), w.mem[:min(len(w.mem), HeadBytes)]...)
	w.pool.recycle(w.mem, w.held)
	w.mem, w.held = head, 0
	return nil
}

func (w *Writer) toFile(p []byte) (int, error) {
	if rest := HeadBytes - len(w.mem); rest > 0 {
		w.mem = append(w.mem, p[:min(rest, len(p))]...)
	}
	n, err := w.file.Write(p)
	w.size += int64(n)
	if err != nil {
		err = &Error{err}
	}
	return n, err
}

// Truncate cuts the content to its first n bytes, if it is longer. Nothing may be written
// afterwards.
func (w *Writer) Truncate(n int64) error {
	if n >= w.size {
		return nil
	}
	w.size = n
	w.mem = w.mem[:min(int64(len(w.mem)), n)]
	if w.file != nil {
		if err := w.file.Truncate(n); err != nil {
			return &Error{err}
		}
	}
	return nil
}

// Content ends the writing and returns what was written. The caller closes it.
func (w *Writer) Content() *Content {
	c := &Content{pool: w.pool, mem: w.mem, file: w.file, size: w.size, held: w.held}
	*w = Writer{}
	return c
}

// Discard ends the writing and drops what was written. After Content it does nothing.
func (w *Writer) Discard() { _ = w.Content().Close() }
