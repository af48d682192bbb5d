package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
	"github.com/amble-crawler/amble/internal/testing/testkit"
)

const childDir = "AMBLE_TEST_WEBHOOK"

// TestMain lets the test binary be the process that gets killed.
func TestMain(m *testing.M) {
	testkit.BeChild(childDir, crawlAsChild)
	goleak.VerifyTestMain(m)
}

const secret = "open sesame"

// state is what the database of a crawl has.
type state struct {
	Marks []archive.Mark
	Pages int // committed
}

func options(dir string) archive.Options {
	o := archive.DefaultOptions()
	o.Known, o.Formats, o.Dir = []archive.Format{Format()}, []string{Name}, filepath.Join(dir, "output")
	return o
}

// crawler writes pages as a crawl does: each commit is one file, in place of the one before.
type crawler struct {
	state
	dir     string
	o       archive.Options
	w       *archive.Writer
	encoder *archive.Encoder
}

func newCrawler(dir string, o archive.Options) (c *crawler, err error) {
	c = &crawler{dir: dir, o: o}
	if text, err := os.ReadFile(filepath.Join(dir, "state")); err == nil {
		if err := json.Unmarshal(text, &c.state); err != nil {
			return nil, err
		}
	}
	if c.w, err = archive.Open(o, c.Marks); err == nil {
		c.encoder, err = archive.NewEncoder(o, nil)
	}
	return c, err
}

// commit commits more pages.
func (c *crawler) commit(pages int) error {
	for i := range pages {
		item, err := c.encoder.Encode(&archive.Visit{Page: &archive.Page{
			URL: fmt.Sprintf("http://a.test/%d", c.Pages+i), Title: fmt.Sprint(rand.Int()),
		}})
		if err == nil {
			err = c.w.Append(item, time.Now())
		}
		if err != nil {
			return errors.Join(err, c.w.Rollback(c.Marks))
		}
	}
	marks, err := c.w.Sync()
	if err != nil {
		return err
	}
	next := state{marks, c.Pages + pages}
	text, err := json.Marshal(next)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, "next"), text, 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(c.dir, "next"), filepath.Join(c.dir, "state"))
	}
	if err != nil {
		return err
	}
	c.state = next
	return c.w.Committed()
}

func newSender(dir, url string) *Sender {
	s := New(Options{URL: url, Secret: secret, Agent: "amble-test", Alarms: new(Alarms),
		Log:  slog.New(slog.DiscardHandler),
		Dirs: func() []string { return []string{filepath.Join(dir, "output")} }})
	s.first, s.look = time.Millisecond, time.Millisecond
	return s
}

// crawlAsChild commits pages and posts them until it is killed.
func crawlAsChild(dir, url string) error {
	c, err := newCrawler(dir, options(dir))
	if err != nil {
		return err
	}
	newSender(dir, url).Start()
	for err == nil {
		err = c.commit(1 + rand.IntN(20))
		time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
	}
	return err
}

// receiver is what results are posted to.
type receiver struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	answer func(w http.ResponseWriter) // nil: it takes everything
	events map[string]string           // of all deliveries that it has read, by id
	taken  map[string]bool             // URLs, of those that it has taken
	alarms []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, events: make(map[string]string), taken: make(map[string]bool)}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the sender was killed
	}
	assert.Equal(r.t, q.Header.Get("Amble-Signature"), "sha256="+Sign(secret, body), "a delivery has another signature")
	var d struct{ Events []event }
	if err := json.Unmarshal(body, &d); err != nil || len(d.Events) == 0 || len(d.Events) > mostEvents {
		r.t.Errorf("a delivery of %d events: %v", len(d.Events), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range d.Events {
		if before, known := r.events[e.ID]; known && before != string(e.Page) {
			r.t.Errorf("the event %s was %s, and is %s", e.ID, before, e.Page)
		}
		r.events[e.ID] = string(e.Page)
		if e.Type != "result" {
			r.alarms = append(r.alarms, e.ID+" "+string(e.Alarm))
		}
	}
	if r.answer != nil {
		r.answer(w)
		return
	}
	for _, e := range d.Events {
		var page struct{ URL string }
		if err := json.Unmarshal(e.Page, &page); err == nil {
			r.taken[page.URL] = true
		}
	}
}

func (r *receiver) set(answer func(http.ResponseWriter)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.taken)
}

// check compares what was taken with what was committed.
func (r *receiver) check(pages int) {
	r.t.Helper()
	assert.Equal(r.t, r.count(), pages, "pages were taken, and were committed")
	for i := range pages {
		assert.True(r.t, r.taken[fmt.Sprintf("http://a.test/%d", i)], "page %d was lost", i)
	}
}

// TestDelivery: results are posted with ids and a signature, alarms too, and files that were taken are removed. What a
// receiver does not take is posted again, whatever it answers.
func TestDelivery(t *testing.T) {
	t.Parallel()
	dir, r := t.TempDir(), newReceiver(t)
	c := must.Get(newCrawler(dir, options(dir)))(t)
	s := newSender(dir, r.URL)
	must.Do(t, c.commit(700))
	for _, answer := range []func(http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		func(w http.ResponseWriter) {
			w.Header().Set("Location", r.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, strings.Repeat("x", 2*mostAnswer))
		},
	} {
		r.set(answer)
		more, err := s.round(t.Context())
		assert.True(t, err != nil && !more, "a delivery that was not taken: %v, %v", more, err)
		_, is := s.Trouble()
		assert.True(t, is, "there is no trouble")
	}
	r.set(nil)
	s.o.Alarms.Add("walls-1", map[string]string{"code": "walls"}, false)
	s.o.Alarms.Add("walls-1", map[string]string{"code": "walls"}, true)
	must.Do(t, s.End(t.Context(), false))
	r.check(700)
	assert.Equal(t, strings.Join(r.alarms, ", "), `walls-1 {"code":"walls"}, walls-1-end {"code":"walls"}`,
		"the alarms")
	if _, is := s.Trouble(); is || len(r.events) != 702 {
		t.Errorf("%d events, and trouble: %v", len(r.events), is)
	}
	if marks, err := c.w.Finish(); err != nil {
		t.Fatal(err)
	} else if c.Marks = marks; c.commit(0) != nil || c.commit(1) != nil {
		t.Fatal("cannot go on with another file")
	}
	must.Do(t, s.End(t.Context(), false))
	r.check(701)
	files, err := list(c.o.Dir)
	assert.True(t, err == nil && len(files) == 1 && !files[0].complete, "the queue has %v (%v)", files, err)
	c.w.Close()
}

// TestFullQueue: the crawl is held when the queue is full, and goes on when the receiver has taken some.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	dir, r := t.TempDir(), newReceiver(t)
	o := options(dir)
	o.Queue = 100_000
	c, err := newCrawler(dir, o)
	must.Do(t, err)
	for err = c.commit(64); err == nil; err = c.commit(64) {
		must.True(t, c.Pages <= 10_000, "the queue is never full")
	}
	must.True(t, errors.Is(err, ErrFull), "%v", err)
	assert.Is(t, c.commit(1), ErrFull, "the next commit")
	if marks, err := c.w.Finish(); err != nil {
		t.Fatal(err)
	} else if c.Marks = marks; c.w.Committed() != nil {
		t.Fatal("cannot complete the file")
	}
	s := newSender(dir, r.URL)
	must.Do(t, s.End(t.Context(), false))
	assert.NoError(t, c.commit(64), "the queue is empty, and a commit fails")
	must.Do(t, s.End(t.Context(), false))
	r.check(c.Pages)
	c.w.Close()
}

// TestKills: a process that is killed at any moment, and a receiver that breaks off at any moment, lose nothing that
// was committed; what is posted again has the same id, and nothing is posted that was not committed.
func TestKills(t *testing.T) {
	t.Parallel()
	dir, r := t.TempDir(), newReceiver(t)
	r.set(func(w http.ResponseWriter) {
		if rand.IntN(2) == 0 {
			panic(http.ErrAbortHandler) // as a receiver that is killed after it has read a delivery
		}
	})
	testkit.PrepareChild(t, dir, r.URL)
	read := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.events)
	}
	for range 8 {
		child := testkit.Child(t, childDir, dir)
		must.Do(t, child.Start())
		before := read()
		testkit.Until(t, "some deliveries", func() bool { return read() > before+rand.IntN(100) })
		must.Do(t, child.Process.Kill())
		_ = child.Wait() // it was killed
	}
	r.set(nil)
	c := must.Get(newCrawler(dir, options(dir)))(t)
	defer c.w.Close()
	must.Do(t, newSender(dir, r.URL).End(t.Context(), false))
	seen := make(map[string]bool)
	for _, page := range r.events {
		var p struct{ URL string }
		must.Do(t, json.Unmarshal([]byte(page), &p))
		assert.True(t, !seen[p.URL], "%s has two ids", p.URL)
		seen[p.URL] = true
	}
	assert.Equal(t, len(seen), c.Pages, "pages were posted, and were committed")
}

// rewriting erases the first line of each file.
type rewriting struct {
	Output
	dir string
}

func (r rewriting) Erase(_ context.Context, file string, _ func(archive.ErasedFile) error) error {
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	return os.WriteFile(filepath.Join(r.dir, file), []byte(rest), 0o600)
}

// TestErasedQueue: what an erasure leaves in the queue is posted, although its places are others, and no id is that of
// another line.
func TestErasedQueue(t *testing.T) {
	t.Parallel()
	dir, r := t.TempDir(), newReceiver(t)
	c := must.Get(newCrawler(dir, options(dir)))(t)
	s := newSender(dir, r.URL)
	must.Do(t, errors.Join(c.commit(3), s.End(t.Context(), false), c.commit(3)))
	files, err := list(c.o.Dir)
	must.True(t, err == nil && len(files) == 1, "%v, %v", files, err)
	f := Rewinding(c.o.Dir, rewriting{dir: c.o.Dir})
	must.Do(t, f.Erase(t.Context(), filepath.Base(files[0].path), nil))
	must.Do(t, s.End(t.Context(), false))
	r.check(6)
	c.w.Close()
}
