//go:build !core

package webhook

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// Options say what is posted, and where to.
type Options struct {
	URL    string
	Secret string          // of the signature
	Agent  string          // the User-Agent header
	Dirs   func() []string // the directories of the output, as of now
	Alarms *Alarms         // that are posted too
	Log    *slog.Logger
}

// Bounds of a delivery, and of waiting.
const (
	mostEvents  = 500
	mostBytes   = 1 << 20
	mostAlarms  = mostEvents
	timeout     = 30 * time.Second // of a delivery
	mostAnswer  = 64 << 10         // bytes of a response that are read
	lookEvery   = time.Second
	firstWait   = time.Second // after a failure; it doubles with each
	longestWait = 5 * time.Minute
	lastTries   = 3 // at the end of a crawl
)

// event is one event of a delivery. docs/WEBHOOK.md has the names.
type event struct {
	ID    string          `json:"id"`
	Type  string          `json:"type"` // result, alarm or alarm_end
	Page  json.RawMessage `json:"page,omitempty"`
	Alarm json.RawMessage `json:"alarm,omitempty"`
}

// Alarms are alarms that wait to be posted. Any goroutine may call Add.
type Alarms struct {
	mu   sync.Mutex
	list []event
}

// Add has an alarm posted that has begun or ended. id is its own; of too many the oldest are dropped.
func (a *Alarms) Add(id string, alarm any, ended bool) {
	e := event{ID: id, Type: "alarm"}
	if ended {
		e.ID, e.Type = id+"-end", "alarm_end"
	}
	var err error
	if e.Alarm, err = json.Marshal(alarm); err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, e)
	a.list = a.list[max(len(a.list)-mostAlarms, 0):]
}

// waiting returns those that wait.
func (a *Alarms) waiting() []event {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.list)
}

// taken drops those that were posted.
func (a *Alarms) taken(posted []event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = slices.DeleteFunc(a.list, func(e event) bool {
		return slices.ContainsFunc(posted, func(sent event) bool { return sent.ID == e.ID })
	})
}

// Sender posts what is in the queues. Start, its stop and End are called one after the other; the others by anybody.
type Sender struct {
	o           Options
	http        *http.Client
	first, look time.Duration
	cursors     map[string]*cursor // by directory

	mu      sync.Mutex
	trouble string
}

// New returns a sender.
func New(o Options) *Sender {
	return &Sender{o: o, first: firstWait, look: lookEvery, cursors: make(map[string]*cursor), http: &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{MaxResponseHeaderBytes: mostAnswer, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Trouble says why the receiver does not take what waits; false: it does.
func (s *Sender) Trouble() (text string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble, s.trouble != ""
}

// Start posts in a goroutine until stop is called, which waits for its end.
func (s *Sender) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.run(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

func (s *Sender) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		more, err := s.round(ctx)
		wait := s.look
		switch {
		case err != nil:
			wait = min(s.first<<min(failures, 16), longestWait)
			failures++
		case more:
			failures = 0
			continue
		default:
			failures = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// End posts what the end of the crawl has left, unless it was stopped before it was done. The error says that the
// receiver has not taken all: the next run goes on.
func (s *Sender) End(ctx context.Context, stopped bool) (err error) {
	defer s.http.CloseIdleConnections()
	for tries := 0; !stopped && tries < lastTries; {
		more, failed := s.round(ctx)
		if err = failed; err == nil && !more {
			return nil
		}
		if err == nil {
			tries = 0
			continue
		}
		tries++
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.first << tries):
		}
	}
	if err != nil {
		return fmt.Errorf("the webhook has not taken all results; the next run goes on with them: %w", err)
	}
	return nil
}

// round posts one delivery of alarms, and one of each queue. more says that there may be others.
func (s *Sender) round(ctx context.Context) (more bool, err error) {
	if err = s.postAlarms(ctx); err == nil {
		for _, dir := range s.o.Dirs() {
			var sent bool
			if sent, err = s.postNext(ctx, dir); err != nil {
				break
			}
			more = more || sent
		}
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble = ""; err != nil {
		s.trouble = "webhook: " + err.Error()
		s.o.Log.Warn("the webhook does not take a delivery; it is tried again", "error", err)
	}
	return more, err
}

func (s *Sender) postAlarms(ctx context.Context) error {
	list := s.o.Alarms.waiting()
	if len(list) == 0 {
		return nil
	}
	if err := s.post(ctx, list); err != nil {
		return err
	}
	s.o.Alarms.taken(list)
	return nil
}

// postNext posts the next lines of a queue, and moves its cursor. false: there are none.
func (s *Sender) postNext(ctx context.Context, dir string) (sent bool, err error) {
	end, known := committed(dir)
	if !known {
		return false, nil
	}
	c := s.cursors[dir]
	if c == nil {
		read, err := readCursor(dir, rand.Text())
		if err != nil {
			return false, err
		}
		c = &read
		s.cursors[dir] = c
	}
	if err := c.rewound(dir); err != nil {
		return false, err
	}
	files, err := list(dir)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		switch {
		case f.serial > end.Serial:
			continue
		case f.serial < c.Serial:
			f.remove()
			continue
		case f.serial > c.Serial:
			c.place = place{Serial: f.serial}
		}
		limit := int64(-1)
		if f.serial == end.Serial {
			limit = end.Offset
		}
		events, next, err := readEvents(f.path, *c, limit)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has its final name now
			return true, nil
		case err != nil:
			return false, err
		case next == c.Offset:
			if info, err := os.Stat(f.path); err == nil && info.Size() == c.Offset {
				f.remove() // else its end is not known to be committed
			}
			continue
		case len(events) > 0:
			if err := s.post(ctx, events); err != nil {
				return false, err
			}
		}
		c.Offset = next
		return true, c.save(dir)
	}
	return false, nil
}

// remove removes a file that was taken. One without its final name, or that cannot be removed, is removed later.
func (f *queueFile) remove() {
	if f.complete {
		_ = os.Remove(f.path)
	}
}

// readEvents reads the lines of a file from a cursor on, up to limit, as many as a delivery has. A limit below 0 is the
// end of the file.
func readEvents(path string, c cursor, limit int64) (events []event, next int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("webhook: %w", err)
	}
	defer f.Close()
	if limit < 0 {
		info, err := f.Stat()
		if err != nil {
			return nil, 0, err
		}
		limit = info.Size()
	}
	lines := bufio.NewReader(io.NewSectionReader(f, c.Offset, max(limit-c.Offset, 0)))
	next = c.Offset
	for len(events) < mostEvents && next-c.Offset < mostBytes {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, fmt.Errorf("webhook: read %s: %w", path, err)
		}
		if json.Valid(line) { // else the disk has damaged it: it costs this line
			id := fmt.Sprintf("%s-%d-%d", c.Queue, c.Serial, next)
			events = append(events, event{ID: id, Type: "result", Page: bytes.TrimSpace(line)})
		}
		next += int64(len(line))
	}
	return events, next, nil
}

// post posts a delivery.
func (s *Sender) post(ctx context.Context, events []event) error {
	body, err := json.Marshal(struct {
		Events []event `json:"events"`
	}{events})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", s.o.Agent)
	r.Header.Set("Amble-Signature", "sha256="+Sign(s.o.Secret, body))
	response, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, mostAnswer)) // so that the connection is used again
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answered %s", response.Status)
	}
	return nil
}

// Sign returns the HMAC-SHA256 of a body, in hexadecimal digits.
func Sign(secret string, body []byte) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}
