//go:build !core

package crawl

import (
	"fmt"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/queues"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/storage"
)

// QueueSettings are what a client sets for one host.
type QueueSettings = queues.Settings

// setQueue changes the settings of a host.
func (g *gathering) setQueue(name string, change func(*QueueSettings)) error {
	now := g.o.Now()
	host, err := queues.Of(g.store, name)
	if err != nil {
		return err
	}
	return g.setHost(&host, change, now)
}

// setHost is setQueue of a host of the store.
func (g *gathering) setHost(host *storage.Host, change func(*QueueSettings), now time.Time) error {
	before, err := queues.Read(g.store, host, now)
	if err != nil {
		return err
	}
	after := before
	if before.Delay != nil { // change may write to it
		delay := *before.Delay
		after.Delay = &delay
	}
	change(&after)
	for _, command := range queues.Commands(&before, &after, now) {
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
	g.log.Debug("a client sets a host", "host", host.Name, "blocked_until", after.BlockedUntil, "limit", after.Limit)
	return nil
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
		limit, err := queues.DecodeLimit(host.ID, mark)
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
	} else if e.keptDelay, err = queues.Delay(e.store); err != nil {
		return err
	}
	if e.keptDelay != nil {
		e.o.Frontier.Politeness.Delay = *e.keptDelay
		e.live.Store(newInForce(&e.o, e.o.Live()))
	}
	return nil
}
