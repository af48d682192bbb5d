package fetch

import (
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// idleInput and idleRatio bound how many bytes a decoder may read for those that it returns:
	// compressed content is shorter than content. They stop streams of empty members, frames or
	// blocks, which decode to nothing.
	idleInput, idleRatio = 256 << 10, 4
	// innerRatio bounds the size of an encoding below another one: compressed data does not
	// compress well. It stops streams of nothing that are compressed twice.
	innerRatio = 32
	// cpuBase and cpuByte bound the processor time of a body, at some thirty times what a byte
	// takes. They stop streams whose tables take longer to build than their content to read.
	cpuBase, cpuByte = 250 * time.Millisecond, 500 * time.Nanosecond
)

// fedBytes is how many bytes a decoder gets at a time. After each piece, its output is compared
// with its input.
const fedBytes = 1 << 10

// errNoWork ends a stream that costs more than it carries.
var errNoWork = errors.New("it takes much to decode and carries next to nothing")

// effort is the cost of decoding a body. It belongs to one goroutine, which stays on its thread.
type effort struct {
	begin time.Duration // of the thread's processor time
	bytes int64         // in and out, of all stages
}

// spend adds n bytes, and reports whether the cost is too high. A nil effort has no bound.
func (e *effort) spend(n int) (tooMuch bool) {
	if e == nil {
		return false
	}
	e.bytes += int64(n)
	return threadTime()-e.begin > cpuBase+time.Duration(e.bytes)*cpuByte
}

// stage is one decoder, with what it reads from.
type stage struct {
	name    string
	work    *effort
	inner   bool      // its output is decoded again
	from    io.Reader // encoded
	to      io.Reader // decoded; reads from fed
	in, out int64     // bytes
	err     error     // of from or of a bound; permanent
}

// fed is the encoded side of a stage.
type fed struct{ *stage }

func (f fed) Read(p []byte) (int, error) {
	s := f.stage
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.from.Read(p[:min(len(p), fedBytes)])
	s.in += int64(n)
	if s.work.spend(n) || s.in > idleInput+idleRatio*s.out {
		s.err = errNoWork
		return 0, s.err
	}
	return n, err
}

// Read reads what is decoded, and marks the errors of the decoder as such.
func (s *stage) Read(p []byte) (int, error) {
	n, err := s.to.Read(p)
	s.out += int64(n)
	if s.work.spend(n) {
		s.err = errNoWork
	}
	if s.inner && s.out > idleInput+innerRatio*s.in {
		err = errNoWork
	}
	if s.err != nil { // whatever a decoder makes of it
		err = s.err
	}
	if err != nil && err != io.EOF {
		err = &encodingError{fmt.Errorf("content encoding %q: %w", s.name, err)}
	}
	return n, err
}
