package fetch

import (
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// idleInput and idleRatio bound what a decoder may read for what it gives: compressed content is
	// shorter than content. It is for streams that decode to nothing: of empty members, frames or blocks.
	idleInput, idleRatio = 256 << 10, 4
	// innerRatio bounds how much an encoding below another one may come to: what is compressed does
	// not compress well. It is for streams of nothing that are packed once more.
	innerRatio = 32
	// cpuBase and cpuByte bound the processor time of a body, some thirty times what a byte takes. It
	// is for streams whose tables take longer to build than their content to read.
	cpuBase, cpuByte = 250 * time.Millisecond, 500 * time.Nanosecond
)

// fedBytes is how much a decoder gets at a time: after that it is looked at what it has made of it.
const fedBytes = 1 << 10

// errNoWork ends a stream that costs more than it carries.
var errNoWork = errors.New("it takes much to decode and carries next to nothing")

// effort is what decoding a body has taken. It belongs to one goroutine, which stays on its thread.
type effort struct {
	begin time.Duration // of the thread's processor time
	bytes int64         // in and out, of all stages
}

// spend counts n bytes more, and reports whether too much has been spent. A nil effort has no bound.
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
	inner   bool      // what it gives is to be decoded again
	from    io.Reader // encoded
	to      io.Reader // decoded; reads from fed
	in, out int64     // bytes
	err     error     // of from or of a bound; stays
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
