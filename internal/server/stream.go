package server

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/inspect"
)

// jsonLines is the type of answers that are one JSON object a line.
const jsonLines = "application/jsonl"

// Bounds of answers and bodies of any length: how long one piece of it may take.
const (
	streamTimeout = 30 * time.Second
	streamBuffer  = 32 << 10
)

// stream is an answer of any length. It goes at the client's pace, and holds no more than a buffer.
type stream struct {
	inspect.Lines
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  *bufio.Writer
	now     func() time.Time
	begun   bool
}

func (s *Server) newStream(w http.ResponseWriter) *stream {
	t := &stream{w: w, control: http.NewResponseController(w), now: s.now}
	t.buffer = bufio.NewWriterSize(t, streamBuffer)
	t.Lines = inspect.NewLines(t.buffer)
	_ = t.control.SetReadDeadline(time.Time{}) // else the end of the time to read a request would break off the answer
	return t
}

// Write sends a piece.
func (t *stream) Write(piece []byte) (int, error) {
	if !t.begun {
		t.begun = true
		t.w.Header().Set("Content-Type", jsonLines)
	}
	if t.now != nil {
		_ = t.control.SetWriteDeadline(t.now().Add(streamTimeout))
	}
	return t.w.Write(piece)
}

// flush sends what has gathered.
func (t *stream) flush() error {
	return errors.Join(t.buffer.Flush(), t.control.Flush())
}

// end ends the answer. After an error a client must not take what it got for all of it: where nothing was sent yet it is told
// what is wrong, else the connection breaks.
func (t *stream) end(err error) {
	switch {
	case err == nil:
		_, _ = t.Write(nil)
		if t.buffer.Flush() == nil {
			return
		}
	case !t.begun:
		writeError(t.w, err)
		return
	}
	panic(http.ErrAbortHandler)
}

// errQuery is a question that makes no sense.
type errQuery struct{ error }

// writeError answers with what is wrong.
func writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var query errQuery
	switch {
	case errors.As(err, &query):
		status = http.StatusBadRequest
	case errors.Is(err, inspect.ErrUnknown):
		status = http.StatusNotFound
	case errors.Is(err, crawl.ErrNotRunning):
		status = http.StatusServiceUnavailable
	}
	writeProblem(w, status, err.Error())
}

// patient is a body of any length that may take its time, but not stop.
type patient struct {
	body    io.Reader
	control *http.ResponseController
	now     func() time.Time
}

// Read reads a piece.
func (p *patient) Read(piece []byte) (int, error) {
	if p.now != nil {
		_ = p.control.SetReadDeadline(p.now().Add(streamTimeout))
	}
	return p.body.Read(piece)
}
