package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/requestlog"
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

// Fetch is the form of a finished request in the live stream.
type Fetch struct {
	At      time.Time `json:"at"` // its end
	Host    string    `json:"host"`
	URL     string    `json:"url"`
	Kind    string    `json:"kind"` // page or robots
	Status  int       `json:"status,omitempty"`
	Error   string    `json:"error,omitempty"` // the kind of failure, where there was no whole answer
	Bytes   int64     `json:"bytes"`
	Seconds float64   `json:"seconds"` // from its start to its end
}

// fetchOf returns the form of a request.
func fetchOf(q *requestlog.Request) Fetch {
	f := Fetch{
		At: q.End.UTC(), Host: q.URL.Host(), URL: q.URL.String(), Kind: q.Kind.String(), Status: q.Status,
		Bytes: q.BodyBytes, Seconds: q.End.Sub(q.Start).Seconds(),
	}
	if q.Status == 0 {
		f.Error = q.Failure.String()
	}
	return f
}

// recentFetches is how many of the newest fetches are kept for those who come later.
const recentFetches = 200

// feed keeps the newest fetches. Whoever watches reads them at intervals, so that a slow reader holds up nobody; what it misses in a fast
// crawl it misses.
type feed struct {
	mu   sync.Mutex
	kept [recentFetches]requestlog.Request
	n    int // told so far
}

// Requested is part of crawl.Observer.
func (f *feed) Requested(q requestlog.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept[f.n%recentFetches] = q
	f.n++
}

// Committed is part of crawl.Observer.
func (f *feed) Committed(time.Duration, int) {}

// since returns the newest of the fetches after the first n, oldest first, and how many there were in all.
func (f *feed) since(n, most int) ([]Fetch, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []Fetch
	for i := max(n, f.n-min(most, recentFetches), 0); i < f.n; i++ {
		list = append(list, fetchOf(&f.kept[i%recentFetches]))
	}
	return list, f.n
}

// Bounds of live streams.
const (
	maxWatchers   = 32
	watchInterval = 500 * time.Millisecond
	maxFetches    = 40 // of one event
)

// watchers counts live streams.
type watchers struct{ n atomic.Int32 }

func (w *watchers) enter() bool {
	if w.n.Add(1) > maxWatchers {
		w.n.Add(-1)
		return false
	}
	return true
}

func (w *watchers) leave() { w.n.Add(-1) }

func (s *Server) eventsAPI(api huma.API) {
	op := operation("GET", "/events", "crawl-events", "The crawl live, as server-sent events")
	op.Description = "Events of type status and point come once a second, fetches up to twice: the newest of the requests that ended, a list. What a fast crawl does beyond that is left out."
	op.Responses = map[string]*huma.Response{"200": {Description: "an endless stream", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	handle(api, op, func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
		if !s.watchers.enter() {
			return nil, huma.NewError(http.StatusServiceUnavailable, fmt.Sprintf("%d live streams are open, more are not served", maxWatchers))
		}
		return s.stream(func(t *stream) error {
			defer s.watchers.leave()
			t.kind = "text/event-stream"
			return s.tellLive(ctx, t)
		}), nil
	})
}

// tellLive sends events until the client goes or the server closes.
func (s *Server) tellLive(ctx context.Context, t *stream) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	list, seen := s.feed.since(0, recentFetches)
	err := event(t, "fetches", list)
	for n := 0; err == nil; n++ {
		if n%2 == 0 {
			err = s.tellStatus(t)
		}
		if err = errors.Join(err, t.flush()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.closing:
			return nil
		case <-tick.C:
		}
		if list, seen = s.feed.since(seen, maxFetches); len(list) > 0 {
			err = event(t, "fetches", list)
		}
	}
	return err
}

func (s *Server) tellStatus(t *stream) error {
	err := event(t, "status", s.crawl.Status())
	if p, ok := s.recorder.last(); ok {
		err = errors.Join(err, event(t, "point", p))
	}
	return err
}

// event writes one event (HTML Living Standard, section 9.2).
func event(t *stream, kind string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		_, err = fmt.Fprintf(t.buffer, "event: %s\ndata: %s\n\n", kind, data)
	}
	return err
}
