package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// markPaused is the name of the mark that says since when the whole crawl is paused.
const markPaused = "paused"

// order is what the operator wants, on its way through the dispatcher.
type order struct {
	host   string // empty: the whole crawl
	about  frontier.Order
	pause  bool       // of the whole crawl
	retry  *retry     // to begin; nil: none
	answer chan error // holds one
}

// Control carries out an order about one host, and returns when that is on disk. Any goroutine may call it. The error is inspect.ErrUnknown
// if the host is not known, ErrNotRunning, that of the context, or why it could not be committed.
//
// A request that is under way when a pause begins is not broken off.
func (e *Engine) Control(ctx context.Context, host string, o frontier.Order) error {
	if host == "" { // that would be about the whole crawl
		return fmt.Errorf("a host without a name: %w", inspect.ErrUnknown)
	}
	return e.give(ctx, &order{host: host, about: o})
}

// Pause lets no request begin until Resume, in this run and those to come. It returns when that is on disk. Any goroutine may call it; the
// errors are those of Control.
func (e *Engine) Pause(ctx context.Context) error { return e.give(ctx, &order{pause: true}) }

// Resume ends a Pause. Any goroutine may call it; the errors are those of Control.
func (e *Engine) Resume(ctx context.Context) error { return e.give(ctx, &order{}) }

// give hands an order to the dispatcher and waits until it is on disk.
func (e *Engine) give(ctx context.Context, o *order) error {
	d := e.desk.Load()
	if d == nil {
		return ErrNotRunning
	}
	o.answer = make(chan error, 1)
	select {
	case d.orders <- o:
	case <-d.closed:
		return ErrNotRunning
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow carries out an order. It is answered by the commit that it is part of.
func (r *run) follow(o *order) {
	switch {
	case o.retry != nil:
		r.addRetry(o.retry)
	case o.host == "":
		r.pauseCrawl(o.pause)
	default:
		if err := r.controlHost(o); err != nil {
			o.answer <- err
			return
		}
	}
	r.pending.orders = append(r.pending.orders, o)
}

// pauseCrawl pauses the whole crawl, or ends that.
func (r *run) pauseCrawl(pause bool) {
	var mark []byte
	switch now := r.now(); {
	case !pause:
		r.pausedSince = time.Time{}
	case r.pausedSince.IsZero():
		r.pausedSince = now
	}
	if pause {
		mark, _ = r.pausedSince.MarshalBinary() // fails for zones with seconds only; Local and UTC have none
	}
	r.pending.setMark(markPaused, mark)
	r.log.Info("the operator pauses or resumes the crawl", "paused", pause)
	r.report("running")
}

// controlHost carries out an order about one host. It reads the host's row, and its robots records where they are to be forgotten.
func (r *run) controlHost(o *order) error {
	host, err := r.store.HostByName(o.host)
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("host %s: %w", o.host, inspect.ErrUnknown)
	}
	if err != nil {
		return err
	}
	var records []robots.Record
	if o.about.Kind == frontier.OrderForget {
		if records, err = r.records(&host); err != nil {
			return err
		}
	}
	if err := r.f.Control(&host, records, o.about, r.now()); err != nil {
		return err
	}
	r.collect()
	attributes := []any{"host", o.host, "order", o.about.Kind.String()}
	if !o.about.Until.IsZero() {
		attributes = append(attributes, "until", o.about.Until)
	}
	if o.about.Kind == frontier.OrderDelay {
		attributes = append(attributes, "delay", o.about.Delay)
	}
	r.log.Info("the operator controls a host", attributes...)
	return nil
}

// records are the robots records of all origins of a host; one that cannot be read counts as none.
func (r *run) records(host *storage.Host) ([]robots.Record, error) {
	records := make([]robots.Record, len(host.Queues))
	for i := range host.Queues {
		encoded, err := r.store.Policy(host.Queues[i].Origin)
		if err != nil {
			return nil, err
		}
		if record, err := robots.DecodeRecord(encoded); err == nil {
			records[i] = record
		}
	}
	return records, nil
}

// openPause finds out whether an earlier process was paused and not resumed.
func (r *run) openPause() error {
	encoded, err := r.store.Mark(markPaused)
	if err != nil || len(encoded) == 0 {
		return err
	}
	if err := r.pausedSince.UnmarshalBinary(encoded); err != nil {
		return fmt.Errorf("mark %s: %w", markPaused, err)
	}
	r.log.Warn("the crawl is paused: nothing is asked until it is resumed", "since", r.pausedSince)
	return nil
}

// answerOrders tells what became of the orders in a job.
func (j *job) answerOrders(err error) {
	for _, o := range j.orders {
		o.answer <- err
	}
	j.orders = nil
}
