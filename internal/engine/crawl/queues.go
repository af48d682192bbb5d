//go:build !core

package crawl

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// QueueSettings are what a client sets for one host. They hold until they are changed, also over
// restarts.
type QueueSettings struct {
	BlockedUntil time.Time      // nothing is leased before it; it is a pause of the host. Zero or past: not blocked
	Delay        *time.Duration // between requests; nil: that of the crawl
	Limit        uint64         // completed URLs after which nothing is leased any more; 0: none
}

// queueStore is what the settings of hosts are read from.
type queueStore interface {
	HostByName(string) (storage.Host, error)
	Mark(string) ([]byte, error)
	MarkNames(prefix, after string, most int) ([]string, error)
}

// queueOf returns a host that has URLs. The error is inspect.ErrUnknown if there is none.
func queueOf(s queueStore, name string) (storage.Host, error) {
	h, err := s.HostByName(name)
	if errors.Is(err, storage.ErrNotFound) || err == nil && h.URLs() == 0 {
		return h, fmt.Errorf("host %s: %w", name, inspect.ErrUnknown)
	}
	return h, err
}

// queueSettings reads the settings of a host.
func queueSettings(s queueStore, h *storage.Host, now time.Time) (q QueueSettings, err error) {
	state, err := politeness.DecodeState(h.Politeness)
	if err != nil {
		return q, fmt.Errorf("host %s: %w", h.Name, err)
	}
	q.BlockedUntil = blockedUntil(&state, now)
	if d := state.SetDelay; d == politeness.NoDelay {
		q.Delay = new(time.Duration)
	} else if d > 0 {
		q.Delay = &d
	}
	mark, err := s.Mark(marks.OfLimit(h.ID))
	if err == nil && len(mark) > 0 {
		q.Limit, err = decodeLimit(h.ID, mark)
	}
	return q, err
}

// blockedUntil returns the end of the pause of a host; zero: it has none.
func blockedUntil(s *politeness.State, now time.Time) time.Time {
	for _, x := range s.Holds {
		if x.Reason == politeness.ReasonPause && x.Until.After(now) {
			return x.Until
		}
	}
	return time.Time{}
}

func decodeLimit(host storage.HostID, mark []byte) (uint64, error) {
	limit, err := strconv.ParseUint(string(mark), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("mark %s: %w", marks.OfLimit(host), storage.ErrCorrupt)
	}
	return limit, nil
}

// setQueue changes the settings of a host.
func (g *gathering) setQueue(name string, change func(*QueueSettings)) error {
	now := g.o.Now()
	host, err := queueOf(g.store, name)
	if err != nil {
		return err
	}
	return g.setHost(&host, change, now)
}

// setHost is setQueue of a host of the store.
func (g *gathering) setHost(host *storage.Host, change func(*QueueSettings), now time.Time) error {
	before, err := queueSettings(g.store, host, now)
	if err != nil {
		return err
	}
	after := before
	if before.Delay != nil { // change may write to it
		delay := *before.Delay
		after.Delay = &delay
	}
	change(&after)
	for _, command := range commandsFor(&before, &after, now) {
		if err := g.f.Control(host, nil, command, now); err != nil {
			return err
		}
	}
	if after.Limit != before.Limit {
		var mark []byte
		if after.Limit > 0 {
			mark = strconv.AppendUint(nil, after.Limit, 10)
		}
		g.pending.setMark(marks.OfLimit(host.ID), mark)
		g.f.SetLimit(host.ID, after.Limit, host.Completed(), now)
	}
	g.collect()
	g.log.Debug("a client sets a host", "host", host.Name, "blocked_until", after.BlockedUntil, "limit", after.Limit)
	return nil
}

// commandsFor returns the commands that change the politeness of a host.
func commandsFor(before, after *QueueSettings, now time.Time) (list []frontier.Command) {
	switch {
	case after.BlockedUntil.Equal(before.BlockedUntil):
	case after.BlockedUntil.After(now):
		list = append(list, frontier.Command{Kind: frontier.CommandPause, Until: after.BlockedUntil})
	default:
		list = append(list, frontier.Command{Kind: frontier.CommandResume})
	}
	setDelay := func(d *time.Duration) time.Duration {
		switch {
		case d == nil:
			return 0
		case *d <= 0:
			return politeness.NoDelay
		}
		return *d
	}
	if d := setDelay(after.Delay); d != setDelay(before.Delay) {
		list = append(list, frontier.Command{Kind: frontier.CommandDelay, Delay: d})
	}
	return list
}

// restoreLimits takes over the limits of hosts.
func (g *gathering) restoreLimits(s store) error {
	limits, err := s.Marks(marks.Limit)
	if err != nil {
		return err
	}
	for name, mark := range limits {
		id, ok := marks.HostOfLimit(name)
		if !ok {
			return fmt.Errorf("mark %s: %w", name, storage.ErrCorrupt)
		}
		host, err := s.HostByID(id)
		if err != nil {
			return fmt.Errorf("mark %s: %w", name, err)
		}
		limit, err := decodeLimit(host.ID, mark)
		if err != nil {
			return err
		}
		g.f.SetLimit(host.ID, limit, host.Completed(), g.o.Now())
	}
	return nil
}

// restoreSettings takes over what clients have set for all hosts.
func (e *Engine) restoreSettings() error {
	e.keyIndex.database, e.keyIndex.now = e.store, e.o.Now
	inactive, err := e.store.Mark(marks.Inactive)
	if err != nil {
		return err
	}
	e.inactive.Store(len(inactive) > 0)
	if err := e.keyIndex.restore(); err != nil {
		return err
	}
	if e.o.Shared != nil {
		e.keptDelay = e.o.Shared.keptDelay.Load()
	} else if e.keptDelay, err = storedDelay(e.store); err != nil {
		return err
	}
	if e.keptDelay != nil {
		e.o.Frontier.Politeness.Delay = *e.keptDelay
		e.live.Store(newInForce(&e.o, e.o.Live()))
	}
	return nil
}

// storedDelay returns the delay that clients have set for all hosts; nil: none.
func storedDelay(s store) (*time.Duration, error) {
	mark, err := s.Mark(marks.Delay)
	if err != nil || len(mark) == 0 {
		return nil, err
	}
	delay, err := strconv.ParseInt(string(mark), 10, 64)
	if err != nil || delay < 0 {
		return nil, fmt.Errorf("mark %s: %w", marks.Delay, storage.ErrCorrupt)
	}
	return new(time.Duration(delay)), nil
}
