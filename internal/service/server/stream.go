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
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
)

// JSONLines is the media type of responses with one JSON object a line.
const JSONLines = "application/jsonl"

// Bounds of responses and bodies of any length: how long one piece of it may take.
const (
	streamTimeout = 30 * time.Second
	streamBuffer  = 32 << 10
)

// streams describes an operation whose response is lines of T.
func streams[T any](api huma.API, op huma.Operation) huma.Operation {
	line := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
	op.Responses = map[string]*huma.Response{"200": {
		Description: "one object a line", Content: map[string]*huma.MediaType{JSONLines: {Schema: line}},
	}}
	return op
}

// stream returns a response that f writes.
func (s *Server) stream(f func(*Stream) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		r, w := humago.Unwrap(c)
		t := s.newStream(w, r)
		t.end(f(t))
	}}
}

// Stream is a response of any length: lines of JSON, unless its operation says otherwise. It is written at the
// client's pace, through a buffer. One goroutine uses it.
type Stream struct {
	inspect.Lines
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	buffer  *bufio.Writer
	now     func() time.Time
	kind    string // media type
	begun   bool
}

func (s *Server) newStream(w http.ResponseWriter, r *http.Request) *Stream {
	t := &Stream{w: w, r: r, control: http.NewResponseController(w), now: s.o.Now, kind: JSONLines}
	t.buffer = bufio.NewWriterSize(t, streamBuffer)
	t.Lines = inspect.NewLines(t.buffer)
	// otherwise the timeout for reading the request would break off the response
	_ = t.control.SetReadDeadline(time.Time{})
	return t
}

// Write writes a piece.
func (t *Stream) Write(piece []byte) (int, error) {
	if !t.begun {
		t.begun = true
		t.w.Header().Set("Content-Type", t.kind)
	}
	_ = t.control.SetWriteDeadline(t.now().Add(streamTimeout))
	return t.w.Write(piece)
}

// Begin starts a response that may have nothing to send for a long time. After an error later the
// connection breaks.
func (t *Stream) Begin() {
	_, _ = t.Write(nil) // the next write notices that the client has gone
	_ = t.control.Flush()
}

// Count sets a trailer to a number.
func (t *Stream) Count(trailer string, n uint64) {
	t.w.Header().Set(trailer, strconv.FormatUint(n, 10))
}

// flush writes the buffer.
func (t *Stream) flush() error {
	return errors.Join(t.buffer.Flush(), t.control.Flush())
}

// end ends the response. After an error the client must not take what it got for complete: if
// nothing was sent yet it gets a problem, otherwise the connection breaks.
func (t *Stream) end(err error) {
	switch {
	case err == nil:
		_, _ = t.Write(nil)
		if t.buffer.Flush() == nil {
			return
		}
	case !t.begun:
		problem := asProblem(err)
		t.w.Header().Del("Trailer")
		WriteProblem(t.w, problem.GetStatus(), problem.Error())
		return
	}
	panic(http.ErrAbortHandler)
}

// listBody is a request body of any length. It may be slow, but must not stop.
type listBody struct {
	body    io.Reader
	control *http.ResponseController
	now     func() time.Time
	broken  atomic.Bool
}

// Read reads a piece.
func (p *listBody) Read(piece []byte) (int, error) {
	_ = p.control.SetReadDeadline(p.now().Add(streamTimeout))
	if p.broken.Load() {
		return 0, errBrokenOff
	}
	return p.body.Read(piece)
}

// errBrokenOff is the error of a Read that is no longer wanted.
var errBrokenOff = errors.New("the list is not read any further")

// breakOff ends a Read of another goroutine, and those that come.
func (p *listBody) breakOff() {
	p.broken.Store(true)
	_ = p.control.SetReadDeadline(time.Unix(1, 0))
}

// Fetch is a finished request in the live stream.
type Fetch struct {
	At      time.Time `json:"at"` // its end
	Host    string    `json:"host"`
	URL     string    `json:"url"`
	Kind    string    `json:"kind"` // page or robots
	Status  int       `json:"status,omitempty"`
	Error   string    `json:"error,omitempty"` // the kind of failure, where there was no whole answer
	Bytes   int64     `json:"bytes"`
	Seconds float64   `json:"seconds"` // from start to end
}

// fetchOf returns the Fetch of a request.
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

// recentFetches is how many of the newest fetches are kept for new clients.
const recentFetches = 200

// feed keeps the newest fetches. Clients poll it, so a slow client blocks nobody. In a fast crawl a
// client misses some fetches.
type feed struct {
	mu   sync.Mutex
	kept [recentFetches]requestlog.Request
	n    int // fetches so far
}

// Requested implements crawl.Observer.
func (f *feed) Requested(q requestlog.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept[f.n%recentFetches] = q
	f.n++
}

// Committed implements crawl.Observer.
func (f *feed) Committed(time.Duration, int) {}

// since returns the newest of the fetches after the first n, oldest first, and their total number. The
// list is not nil, because clients get it as it is.
func (f *feed) since(n, most int) ([]Fetch, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []Fetch{}
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

func eventsAPI(s *Server, api huma.API) {
	op := Operation("GET", "/events", "crawl-events", "The crawl live, as server-sent events")
	op.Description = "Events of type status and point are sent once a second, fetches up to twice: a list of the " +
		"newest requests that ended. In a fast crawl some are left out."
	op.Responses = map[string]*huma.Response{"200": {Description: "an endless stream",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	Handle(api, op, func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
		if s.watchers.Add(1) > maxWatchers {
			s.watchers.Add(-1)
			return nil, huma.NewError(http.StatusServiceUnavailable,
				fmt.Sprintf("%d live streams are open, more are not served", maxWatchers))
		}
		return s.stream(func(t *Stream) error {
			defer s.watchers.Add(-1)
			t.kind = "text/event-stream"
			return s.sendLive(ctx, t)
		}), nil
	})
}

// sendLive sends events until the client goes or the server closes. The last status says how the crawl of one machine
// ended.
func (s *Server) sendLive(ctx context.Context, t *Stream) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	list, seen := s.feed.since(0, recentFetches)
	err := event(t, "fetches", list)
	var before *sample
	for n := 0; err == nil; n++ {
		if n%2 == 0 {
			before, err = s.tellStatus(t, before)
		}
		if err = errors.Join(err, t.flush()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.closing:
			if s.o.Division == nil {
				_, err = s.tellStatus(t, before)
			}
			return errors.Join(err, t.flush())
		case <-tick.C:
		}
		if list, seen = s.feed.since(seen, maxFetches); len(list) > 0 {
			err = event(t, "fetches", list)
		}
	}
	return err
}

// tellStatus sends the status, and the newest point of the history: of the cluster, that since the sample
// before. It returns the sample.
func (s *Server) tellStatus(t *Stream, before *sample) (*sample, error) {
	status := s.status(t.r.Context())
	err := event(t, "status", status)
	now := sampleOf(&status.Status)
	switch p, ok := s.recorder.last(); {
	case s.o.Division != nil && before != nil:
		err = errors.Join(err, event(t, "point", now.since(before)))
	case s.o.Division == nil && ok:
		err = errors.Join(err, event(t, "point", p))
	}
	return &now, err
}

// event writes one event (HTML Living Standard, section 9.2).
func event(t *Stream, kind string, value any) error {
	data, err := json.Marshal(value)
	if err == nil {
		_, err = fmt.Fprintf(t.buffer, "event: %s\ndata: %s\n\n", kind, data)
	}
	return err
}
