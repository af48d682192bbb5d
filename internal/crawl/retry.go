package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/storage"
)

// A retry is a walk over all URLs, or those of a host, in the background, which puts some of them back into their queues. A mark in the
// store holds what it is for and how far it has come, written in the transaction that puts URLs back: so each is put back once, whatever happens.
type retry struct {
	order retryOrder
	only  storage.HostID              // the host of the selection; NoHost: every host
	want  func(*storage.Located) bool // of those in a state of when
	when  storage.States
	most  int // URLs put back in one step

	looked, back atomic.Uint64 // URLs so far
	over         chan struct{} // closed when the end is on disk
}

// retryOrder is what the mark holds.
type retryOrder struct {
	Selection *Selection     `json:"selection,omitempty"` // by the operator
	Lifted    []string       `json:"lifted,omitempty"`    // else: settings that became more generous
	Host      storage.HostID `json:"host,omitempty"`      // where the walk goes on
	Ordinal   uint32         `json:"ordinal,omitempty"`
	Back      uint64         `json:"back,omitempty"` // URLs put back so far
}

// Retried says how far a retry has come.
type Retried struct {
	Looked uint64 `json:"looked"` // URLs looked at
	Back   uint64 `json:"back"`   // of these, those that are put back; in a dry run, those that would be
}

// markRetry begins the names of the marks of retries.
const markRetry = "retry/"

// Bounds of one step of a retry.
const (
	retryPage  = 1_000  // URLs put back
	retryLooks = 20_000 // URLs looked at
)

// errHost says that the host of a selection is not known.
func errHost(name string) error { return fmt.Errorf("host %s: %w", name, inspect.ErrUnknown) }

// retryStore is what a retry reads.
type retryStore interface {
	Walk(context.Context, storage.Position, storage.States, func(*storage.Located) error) (storage.Position, error)
	HostByName(string) (storage.Host, error)
}

// newRetry makes the retry of an order. The lifts are needed where the order is about settings. The error is inspect.ErrUnknown where the
// host is not known, or one of reading.
func newRetry(s retryStore, o retryOrder, lifts []lift) (*retry, error) {
	w := &retry{order: o, most: retryPage, over: make(chan struct{})}
	w.back.Store(o.Back)
	if o.Selection == nil {
		lifts = slices.DeleteFunc(slices.Clone(lifts), func(l lift) bool { return !slices.Contains(o.Lifted, l.setting) })
		for i := range lifts {
			w.when |= lifts[i].states
		}
		w.want = func(l *storage.Located) bool {
			return slices.ContainsFunc(lifts, func(x lift) bool { return x.states.Has(l.Last.State) && x.lifts(l) })
		}
		return w, nil
	}
	w.when, w.want = o.Selection.states(), o.Selection.selects
	if o.Selection.Host == "" {
		return w, nil
	}
	h, err := s.HostByName(inspect.CanonicalHost(o.Selection.Host))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, errHost(o.Selection.Host)
	}
	w.only = h.ID
	w.order.Host = max(o.Host, h.ID)
	return w, err
}

// encode is the value of the mark.
func (w *retry) encode() []byte {
	b, _ := json.Marshal(w.order) // of plain data
	return b
}

// step looks at the next URLs and returns those that are put back. The end: there are no more.
func (w *retry) step(ctx context.Context, s retryStore, now time.Time) (page []storage.Done, end bool, err error) {
	if w.when == 0 {
		return nil, true, nil // no setting of this program
	}
	looked, paused := 0, false
	from := storage.Position{Host: w.order.Host, Ordinal: w.order.Ordinal}
	at, err := s.Walk(ctx, from, w.when, func(l *storage.Located) error {
		switch {
		case w.only != storage.NoHost && l.At.Host > w.only:
			return storage.ErrStop
		case looked >= retryLooks || len(page) == w.most:
			paused = true
			return storage.ErrStop
		case l.Host == nil:
			looked += storage.WalkPassed / passedCost
			return nil
		}
		looked++
		w.looked.Add(1)
		if w.when.Has(l.Last.State) && w.want(l) {
			page = append(page, putBack(l.Host.ID, &l.Head, now))
		}
		return nil
	})
	w.order.Host, w.order.Ordinal = at.Host, at.Ordinal
	w.order.Back += uint64(len(page))
	return page, err == nil && !paused, err
}

// putBack puts a URL back into its queue, if it is still in the state in which it was read.
func putBack(host storage.HostID, h *storage.Head, now time.Time) storage.Done {
	return storage.Done{
		Host: host, Ordinal: h.Ordinal, Origin: h.Origin, Priority: h.Priority,
		When: storage.In(h.Last.State), Outcome: frontier.PutBack(h.Last, now),
	}
}

// passedCost is how many hosts are passed over in about the time that a URL takes to be looked at.
const passedCost = 8

// progress is how far it has come on disk.
func (w *retry) progress() Retried { return Retried{Looked: w.looked.Load(), Back: w.back.Load()} }

// CountRetries counts the URLs of a selection and changes nothing. Now and then each is told how far it has come. The error is
// inspect.ErrUnknown for a host that is not known, that of the context or of each, or one of reading.
func CountRetries(ctx context.Context, s retryStore, selection Selection, each func(Retried) error) (Retried, error) {
	w, err := newRetry(s, retryOrder{Selection: &selection}, nil)
	if err != nil {
		return Retried{}, err
	}
	for end := false; !end; {
		var page []storage.Done
		if page, end, err = w.step(ctx, s, time.Time{}); err != nil {
			return w.progress(), err
		}
		w.back.Add(uint64(len(page)))
		if err := each(w.progress()); err != nil {
			return w.progress(), err
		}
	}
	return w.progress(), nil
}

// Retry puts the URLs of a selection back into their queues, in the background. Each is told how far it has come: first when the order is on disk,
// and then now and again. Retry returns when all of it is on disk. Where the context or each ends it earlier, the retry goes on, also in the next run. The error is that of the
// context or of each, inspect.ErrUnknown for a host that is not known, ErrNotRunning, or why the order could not be committed. Any goroutine may call it.
func (e *Engine) Retry(ctx context.Context, s Selection, each func(Retried) error) (Retried, error) {
	d := e.desk.Load()
	if d == nil || d.isClosed() {
		return Retried{}, ErrNotRunning
	}
	w, err := newRetry(e.store, retryOrder{Selection: &s}, nil)
	if err != nil {
		return Retried{}, err
	}
	if err := e.give(ctx, &order{retry: w}); err != nil {
		return Retried{}, err
	}
	if err := each(w.progress()); err != nil {
		return w.progress(), err
	}
	tick := time.NewTicker(retryReports)
	defer tick.Stop()
	for {
		select {
		case <-w.over:
			return w.progress(), nil
		case <-d.closed:
			return w.progress(), ErrNotRunning
		case <-ctx.Done():
			return w.progress(), ctx.Err()
		case <-tick.C:
			if err := each(w.progress()); err != nil {
				return w.progress(), err
			}
		}
	}
}

// retryReports is how often it is told how far a retry has come.
const retryReports = time.Second

// CountRetries is the function of that name, for the crawl. Any goroutine may call it.
func (e *Engine) CountRetries(ctx context.Context, s Selection, each func(Retried) error) (Retried, error) {
	return CountRetries(ctx, e.store, s, each)
}

// addRetry begins a retry, on disk too.
func (r *run) addRetry(w *retry) {
	r.retries++
	r.addSweep(r.newRetrySweep(retryMark(r.retries), w))
}

// retryMark is the name of the mark of the n-th retry.
func retryMark(n uint64) string { return fmt.Sprintf("%s%d", markRetry, n) }

// lastRetry is the greatest number of a retry that has a mark; 0: there is none.
func (e *Engine) lastRetry() (last uint64, err error) {
	marks, err := e.store.Marks(markRetry)
	for name := range marks {
		var n uint64
		if _, err := fmt.Sscanf(name, markRetry+"%d", &n); err != nil {
			return 0, fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
		}
		last = max(last, n)
	}
	return last, err
}

func (r *run) newRetrySweep(mark string, w *retry) *sweep {
	c := &sweep{mark: mark, retry: w}
	c.over = func(time.Time) {
		close(w.over)
		p := w.progress()
		r.log.Info("URLs are put back into their queues", "looked_at", p.Looked, "put_back", p.Back)
	}
	return c
}

// openRetries finds the retries that an earlier process did not finish, and those that this one has begun because of other settings.
func (r *run) openRetries() error {
	marks, err := r.store.Marks(markRetry)
	if err != nil {
		return err
	}
	for name, value := range marks {
		var o retryOrder
		if err := json.Unmarshal(value, &o); err != nil {
			return fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
		}
		w, err := newRetry(r.store, o, r.lifts())
		if err != nil {
			return fmt.Errorf("mark %s: %w", name, err)
		}
		r.sweeps = append(r.sweeps, r.newRetrySweep(name, w))
	}
	r.retries, err = r.lastRetry()
	return err
}

// retryStep makes one step. The sweeper calls it.
func (r *run) retryStep(ctx context.Context, c *sweep) *swept {
	page := &swept{sweep: c}
	page.done, page.end, page.err = c.retry.step(ctx, r.store, r.now())
	page.value = c.retry.encode()
	if ctx.Err() != nil {
		page.err = nil // the crawl ends; the next run goes on from the mark
	}
	return page
}

// takeRetried takes in a step of a retry. Other sweeps have their turn before the next one. Where nothing was found the mark stays: to look once
// more costs less than a commit.
func (r *run) takeRetried(p *swept) {
	c := p.sweep
	r.sweeping--
	c.retry.back.Add(uint64(len(p.done)))
	switch {
	case p.end:
		r.pending.setMark(c.mark, nil)
		r.pending.swept = append(r.pending.swept, c)
		return
	case len(p.done) > 0:
		r.pending.setMark(c.mark, p.value)
	}
	r.sweeps = append(r.sweeps, c)
}
