package server

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/amble-crawler/amble/internal/inspect"
)

// jsonLines is the type of answers that are one JSON object a line.
const jsonLines = "application/jsonl"

// Bounds of answers and bodies of any length: how long one piece of it may take.
const (
	streamTimeout = 30 * time.Second
	streamBuffer  = 32 << 10
)

// streams describes an operation whose answer is lines of T.
func streams[T any](api huma.API, op huma.Operation) huma.Operation {
	line := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
	op.Responses = map[string]*huma.Response{"200": {
		Description: "one object a line", Content: map[string]*huma.MediaType{jsonLines: {Schema: line}},
	}}
	return op
}

// stream answers with what f writes.
func (s *Server) stream(f func(*stream) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		r, w := humago.Unwrap(c)
		t := s.newStream(w, r)
		t.end(f(t))
	}}
}

// stream is an answer of any length. It goes at the client's pace, and holds no more than a buffer.
type stream struct {
	inspect.Lines
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	buffer  *bufio.Writer
	now     func() time.Time
	kind    string // media type
	begun   bool
}

func (s *Server) newStream(w http.ResponseWriter, r *http.Request) *stream {
	t := &stream{w: w, r: r, control: http.NewResponseController(w), now: s.o.Now, kind: jsonLines}
	t.buffer = bufio.NewWriterSize(t, streamBuffer)
	t.Lines = inspect.NewLines(t.buffer)
	_ = t.control.SetReadDeadline(time.Time{}) // else the end of the time to read a request would break off the answer
	return t
}

// Write sends a piece.
func (t *stream) Write(piece []byte) (int, error) {
	if !t.begun {
		t.begun = true
		t.w.Header().Set("Content-Type", t.kind)
	}
	_ = t.control.SetWriteDeadline(t.now().Add(streamTimeout))
	return t.w.Write(piece)
}

// begin says that the answer comes, where it may be long until there is something to send. An error after that breaks the connection.
func (t *stream) begin() {
	_, _ = t.Write(nil) // a client that went away is noticed by the next one
	_ = t.control.Flush()
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
		said := asProblem(err)
		t.w.Header().Del("Trailer")
		writeProblem(t.w, said.GetStatus(), said.Error())
		return
	}
	panic(http.ErrAbortHandler)
}

// patient is a body of any length that may take its time, but not stop.
type patient struct {
	body    io.Reader
	control *http.ResponseController
	now     func() time.Time
}

// Read reads a piece.
func (p *patient) Read(piece []byte) (int, error) {
	_ = p.control.SetReadDeadline(p.now().Add(streamTimeout))
	return p.body.Read(piece)
}
