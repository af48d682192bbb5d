package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/storage"
)

// Selection says which URLs are put back into their queues: those that meet all of it. The zero
// value is every URL that can be put back.
type Selection struct {
	States  storage.States   // a subset of frontier.CanPutBack; zero: all of these
	Reasons []storage.Reason // any of them; none: every reason
	Host    string           // canonical name; empty: every host
	Pattern *regexp.Regexp   // that the URL matches; nil: every URL
}

// states returns those that a URL may be in. States that cannot be left are never among them.
func (s *Selection) states() storage.States {
	if s.States == 0 {
		return frontier.CanPutBack()
	}
	return s.States & frontier.CanPutBack()
}

// selects reports whether a URL is selected, as far as its host does not decide.
func (s *Selection) selects(l *storage.Located) bool {
	return s.states().Has(l.Last.State) &&
		(len(s.Reasons) == 0 || slices.Contains(s.Reasons, l.Last.Reason)) &&
		(s.Pattern == nil || s.Pattern.MatchString(l.URL.String()))
}

// storedSelection is a Selection as a mark has it. Its numbers are those of the storage package,
// which never change.
type storedSelection struct {
	States  int    `json:"states,omitempty"`
	Reasons []int  `json:"reasons,omitempty"`
	Host    string `json:"host,omitempty"`
	Pattern string `json:"pattern,omitempty"`
}

// MarshalJSON makes a storedSelection.
func (s Selection) MarshalJSON() ([]byte, error) {
	stored := storedSelection{States: int(s.States), Host: s.Host}
	for _, r := range s.Reasons {
		stored.Reasons = append(stored.Reasons, int(r))
	}
	if s.Pattern != nil {
		stored.Pattern = s.Pattern.String()
	}
	return json.Marshal(stored)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (s *Selection) UnmarshalJSON(b []byte) error {
	var stored storedSelection
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	*s = Selection{States: storage.States(stored.States), Host: stored.Host}
	for _, r := range stored.Reasons {
		s.Reasons = append(s.Reasons, storage.Reason(r))
	}
	if stored.Pattern == "" {
		return nil
	}
	var err error
	if s.Pattern, err = regexp.Compile(stored.Pattern); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	return nil
}

// retry is a walk over all URLs, or those of a host, in the background, which puts some of them
// back into their queues. A mark in the store holds what it is for and how far it has come. It is
// written in the transaction that puts URLs back, so each is put back once, whatever happens.
type retry struct {
	command retryCommand
	only    storage.HostID              // the host of the selection; NoHost: every host
	want    func(*storage.Located) bool // of those in a state of when
	when    storage.States
	most    int // URLs put back in one step

	inspected, back atomic.Uint64 // URLs so far
	over            chan struct{} // closed when the end is on disk
}

// retryOrder is what the mark holds.
type retryCommand struct {
	Selection *Selection     `json:"selection,omitempty"` // by the operator
	Lifted    []string       `json:"lifted,omitempty"`    // else: settings that became more generous
	Host      storage.HostID `json:"host,omitempty"`      // where the walk goes on
	Ordinal   uint32         `json:"ordinal,omitempty"`
	Back      uint64         `json:"back,omitempty"` // URLs put back so far
}

// Retried is the progress of a retry.
type Retried struct {
	Inspected uint64 `json:"looked"` // URLs examined
	Back      uint64 `json:"back"`   // of these, those that are put back; in a dry run, those that would be
}

// markRetry begins the names of the marks of retries.
const markRetry = "retry/"

// Bounds of one step of a retry.
const (
	retryPage      = 1_000  // URLs put back
	retryInspected = 20_000 // URLs examined
)

// errHost returns the error for a host of a selection that is not known.
func errHost(name string) error { return fmt.Errorf("host %s: %w", name, inspect.ErrUnknown) }

// retryStore is what a retry reads.
type retryStore interface {
	Walk(context.Context, storage.Position, storage.States, func(*storage.Located) error) (storage.Position, error)
	HostByName(string) (storage.Host, error)
}

// newRetry makes the retry of an order. The lifts are needed if the order is about settings. The
// error is inspect.ErrUnknown if the host is not known, or one of reading.
func newRetry(s retryStore, o retryCommand, lifts []lift) (*retry, error) {
	w := &retry{command: o, most: retryPage, over: make(chan struct{})}
	w.back.Store(o.Back)
	if o.Selection == nil {
		isOther := func(l lift) bool { return !slices.Contains(o.Lifted, l.setting) }
		lifts = slices.DeleteFunc(slices.Clone(lifts), isOther)
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
	w.command.Host = max(o.Host, h.ID)
	return w, err
}

// encode is the value of the mark.
func (w *retry) encode() []byte {
	b, _ := json.Marshal(w.command) // of plain data
	return b
}

// step examines the next URLs and returns those that are put back. end: there are no more.
func (w *retry) step(ctx context.Context, s retryStore, now time.Time) (page []storage.Done, end bool, err error) {
	if w.when == 0 {
		return nil, true, nil // no setting of this program
	}
	inspected, paused := 0, false
	from := storage.Position{Host: w.command.Host, Ordinal: w.command.Ordinal}
	at, err := s.Walk(ctx, from, w.when, func(l *storage.Located) error {
		switch {
		case w.only != storage.NoHost && l.At.Host > w.only:
			return storage.ErrStop
		case inspected >= retryInspected || len(page) == w.most:
			paused = true
			return storage.ErrStop
		case l.Host == nil:
			inspected += storage.WalkPassed / passedCost
			return nil
		}
		inspected++
		w.inspected.Add(1)
		if w.when.Has(l.Last.State) && w.want(l) {
			page = append(page, putBack(l.Host.ID, &l.Head, now))
		}
		return nil
	})
	w.command.Host, w.command.Ordinal = at.Host, at.Ordinal
	w.command.Back += uint64(len(page))
	return page, err == nil && !paused, err
}

// putBack puts a URL back into its queue, if it is still in the state in which it was read.
func putBack(host storage.HostID, h *storage.Head, now time.Time) storage.Done {
	return storage.Done{
		Host: host, Ordinal: h.Ordinal, Origin: h.Origin, Priority: h.Priority,
		When: storage.In(h.Last.State), Outcome: frontier.PutBack(h.Last, now),
	}
}

// passedCost is how many hosts are passed over in about the time that a URL takes to be examined.
const passedCost = 8

// progress returns how far it has come on disk.
func (w *retry) progress() Retried {
	return Retried{Inspected: w.inspected.Load(), Back: w.back.Load()}
}

// CountRetries counts the URLs of a selection and changes nothing. Now and then it calls each with
// its progress. The error is inspect.ErrUnknown for a host that is not known, that of the context
// or of each, or one of reading.
func CountRetries(
	ctx context.Context, s retryStore, selection Selection, each func(Retried) error,
) (Retried, error) {
	w, err := newRetry(s, retryCommand{Selection: &selection}, nil)
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

// Retry puts the URLs of a selection back into their queues, in the background. It calls each with
// its progress: first when the command is on disk, and then now and again. Retry returns when all
// of it is on disk. If the context or each ends it earlier, the retry goes on, also in the next
// run. The error is that of the context or of each, inspect.ErrUnknown for a host that is not
// known, ErrNotRunning, or why the command could not be committed. Any goroutine may call it.
func (e *Engine) Retry(ctx context.Context, s Selection, each func(Retried) error) (Retried, error) {
	m := e.mailbox.Load()
	if !m.isOpen() {
		return Retried{}, ErrNotRunning
	}
	w, err := newRetry(e.store, retryCommand{Selection: &s}, nil)
	if err != nil {
		return Retried{}, err
	}
	err = m.submit(ctx, func(d *dispatcher) error {
		d.addRetry(w)
		return nil
	})
	if err != nil {
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
		case <-m.closed:
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

// retryReports is how often the progress of a retry is reported.
const retryReports = time.Second

// CountRetries is the function of that name, for the crawl. Any goroutine may call it.
func (e *Engine) CountRetries(ctx context.Context, s Selection, each func(Retried) error) (Retried, error) {
	return CountRetries(ctx, e.store, s, each)
}

// addRetry begins a retry, on disk too.
func (d *dispatcher) addRetry(w *retry) {
	d.sweeps.retries++
	d.addSweep(newRetrySweep(d.log, retryMark(d.sweeps.retries), w))
}

// retryMark returns the name of the mark of the n-th retry.
func retryMark(n uint64) string { return fmt.Sprintf("%s%d", markRetry, n) }

// lastRetry returns the greatest number of a retry that has a mark; 0: there is none.
func lastRetry(s interface {
	Marks(prefix string) (map[string][]byte, error)
}) (last uint64, err error) {
	marks, err := s.Marks(markRetry)
	for name := range marks {
		var n uint64
		if _, err := fmt.Sscanf(name, markRetry+"%d", &n); err != nil {
			return 0, fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
		}
		last = max(last, n)
	}
	return last, err
}

func newRetrySweep(log *slog.Logger, mark string, w *retry) *sweep {
	s := &sweep{mark: mark, retry: w}
	s.over = func(*frontier.Frontier, time.Time) {
		close(w.over)
		p := w.progress()
		log.Info("URLs are put back into their queues", "looked_at", p.Inspected, "put_back", p.Back)
	}
	return s
}

// restoreRetries goes on with the retries that an earlier process did not finish, and begins those
// of settings that have become more generous.
func (d *dispatcher) restoreRetries() error {
	marks, err := d.store.Marks(markRetry)
	if err != nil {
		return err
	}
	for name, value := range marks {
		var o retryCommand
		if err := json.Unmarshal(value, &o); err != nil {
			return fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
		}
		w, err := newRetry(d.store, o, d.lifts())
		if err != nil {
			return fmt.Errorf("mark %s: %w", name, err)
		}
		d.sweeps.waiting = append(d.sweeps.waiting, newRetrySweep(d.log, name, w))
	}
	d.sweeps.retries, err = lastRetry(d.store)
	return err
}

// takeRetried applies a step of a retry. Other sweeps have their turn before the next one. If
// nothing was found the mark stays: to look once more costs less than a commit.
func (d *dispatcher) takeRetried(p *swept) {
	s := p.sweep
	d.sweeps.active--
	s.retry.back.Add(uint64(len(p.done)))
	switch {
	case p.end:
		d.pending.setMark(s.mark, nil)
		d.pending.swept = append(d.pending.swept, s)
		return
	case len(p.done) > 0:
		d.pending.setMark(s.mark, p.value)
	}
	d.sweeps.waiting = append(d.sweeps.waiting, s)
}
