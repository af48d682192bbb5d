//go:build !core

package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"sync"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Upload is a list of URLs that is sent to the running crawl in one request, while it is read. It
// belongs to one goroutine, except for Sum.
type Upload struct {
	client *Client
	ctx    context.Context
	query  url.Values
	waits  func(reason string)

	body  *io.PipeWriter // nil: the request has not begun
	lines *bufio.Writer
	ended chan struct{} // closed at the end of the request
	err   error         // of the request; set before ended is closed

	mu   sync.Mutex // guards what follows
	last AddReport
}

// Send begins a list for the running crawl. With again, known URLs that failed, were denied or
// excluded go back into their queues. While the crawl has no room, waits is called with the reason,
// repeatedly.
func (c *Client) Send(ctx context.Context, again bool, waits func(reason string)) *Upload {
	s := &Upload{client: c, ctx: ctx, query: url.Values{}, waits: waits, ended: make(chan struct{})}
	if again {
		s.query.Set("again", "true")
	}
	return s
}

// sendBuffer is the size of the pieces in which lines are sent, in bytes.
const sendBuffer = 64 << 10

// begin begins the request.
func (s *Upload) begin() {
	body, lines := io.Pipe()
	s.body, s.lines = lines, bufio.NewWriterSize(lines, sendBuffer)
	go func() {
		defer close(s.ended)
		s.err = eachReport(s.ctx, s.client, "/api/v1/urls", s.query, body, s.take)
		_ = body.CloseWithError(errEnded)
	}()
}

// errEnded is the error of a write behind the end of the request.
var errEnded = errors.New("the request has ended")

func (s *Upload) take(r *AddReport) error {
	if r.Waiting != "" {
		s.waits(r.Waiting)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = *r
	return nil
}

// ListedURL is a line of a list with more than the URL.
type ListedURL struct {
	URL      string `json:"url"`
	Depth    uint16 `json:"depth,omitempty"`
	Priority int8   `json:"priority,omitempty"`
}

// Add sends a URL. The error is that of the request.
func (s *Upload) Add(a crawl.Addition) error {
	if s.body == nil {
		s.begin()
	}
	var err error
	if a.Depth == 0 && a.Priority == 0 {
		_, err = s.lines.WriteString(a.URL.String())
	} else {
		var line []byte
		if line, err = json.Marshal(ListedURL{a.URL.String(), a.Depth, a.Priority}); err == nil {
			_, err = s.lines.Write(line)
		}
	}
	if err == nil {
		err = s.lines.WriteByte('\n')
	}
	if err != nil {
		return s.end()
	}
	return nil
}

// Finish sends the rest, and returns when the crawl has committed all of it. What Sum counts is on
// disk also after an error.
func (s *Upload) Finish() error {
	if s.body == nil {
		return nil
	}
	if s.lines.Flush() == nil {
		_ = s.body.Close()
	}
	return s.end()
}

// end waits for the end of the request and returns its error.
func (s *Upload) end() error {
	<-s.ended
	return s.client.ended(s.err, s.last.Error, s.last.Done)
}

// Sum returns what became of the URLs that are on disk.
func (s *Upload) Sum() crawl.Added {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Added
}
