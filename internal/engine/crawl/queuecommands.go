//go:build !core

package crawl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/queues"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/storage"
)

// SetQueue changes the settings of a host. What it changed is in force and on disk when it returns.
// The dispatcher runs change, which must not wait for anything. The error is inspect.ErrUnknown for a
// host without URLs, ErrNotRunning, that of ctx, or why the change could not be committed. Any
// goroutine may call it.
func (l *lendings) SetQueue(ctx context.Context, host string, change func(*QueueSettings)) error {
	return l.mailbox.Load().submit(ctx, func(d *dispatcher) error { return d.setQueue(host, change) })
}

// Queue returns the settings of a host, as they are on disk. The errors are those of SetQueue.
func (l *lendings) Queue(host string) (QueueSettings, error) {
	h, err := queues.Of(l.store, host)
	if err != nil {
		return QueueSettings{}, err
	}
	return queues.Read(l.store, &h, l.o.Now())
}

// SetDefaultDelay sets the delay of all hosts that have none of their own, in place of the option. It
// is in force when it returns. The engine whose Options.Shared is nil keeps it on disk, and those that
// are opened later and share with it begin with it. The error says what is wrong with the delay, or is
// one of SetQueue. Any goroutine may call it.
func (e *Engine) SetDefaultDelay(ctx context.Context, delay time.Duration) error {
	m := e.mailbox.Load()
	if !m.isOpen() {
		return ErrNotRunning
	}
	live := e.live.Load().Live
	live.Politeness.Delay = delay
	if err := e.o.With(live).Validate(); err != nil {
		return err
	}
	overridden, err := e.overridden(live.Overrides)
	if err != nil {
		return fmt.Errorf("find the hosts of overrides: %w", err)
	}
	return m.submit(ctx, func(d *dispatcher) error {
		d.keptDelay = &delay
		d.change(d.live.Load().Live, overridden)
		if d.o.Shared == nil {
			d.shared.keptDelay.Store(&delay)
			d.pending.setMark(marks.Delay, strconv.AppendInt(nil, int64(delay), 10))
		}
		return nil
	})
}

// QueueStats are the numbers of one host, or of all.
type QueueStats struct {
	Queued       uint64 // URLs that are due now or later, those in process included
	InProcess    uint64 // leased
	Completed    uint64 // URLs that are due no more
	Queues       uint64 // hosts with URLs
	ActiveQueues uint64 // those with Queued URLs
}

// QueueStats returns the numbers of a host, or of all hosts if the name is empty. A host that is not
// known has zeros. The error is ErrNotRunning or that of ctx. Any goroutine may call it.
func (l *lendings) QueueStats(ctx context.Context, host string) (s QueueStats, err error) {
	m := l.mailbox.Load()
	if !m.isOpen() {
		return s, ErrNotRunning
	}
	if host == "" {
		err = m.call(ctx, func(d *dispatcher) {
			d.runOut(d.o.Now())
			all, withWork := d.f.HostsWithURLs()
			s.InProcess, s.Queues, s.ActiveQueues = uint64(d.remote.Len()), uint64(all), uint64(withWork)
		})
		c := l.store.Counters()
		s.Queued = c.Of(storage.Queued) + c.Of(storage.Retrying)
		s.Completed = c.URLs - s.Queued
		return s, err
	}
	h, err := queues.Of(l.store, host)
	if errors.Is(err, inspect.ErrUnknown) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Completed, s.Queues = uint64(h.Completed()), 1
	if s.Queued = uint64(h.URLs()) - s.Completed; s.Queued > 0 {
		s.ActiveQueues = 1
	}
	return s, m.call(ctx, func(d *dispatcher) {
		d.runOut(d.o.Now())
		if v, ok := d.f.View(h.ID); ok {
			s.InProcess = uint64(v.InFlight)
		}
	})
}

// Active reports whether leases are given. Any goroutine may call it.
func (l *lendings) Active() bool { return !l.inactive.Load() }
