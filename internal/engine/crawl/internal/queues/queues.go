//go:build !core

// Package queues has what clients of URLFrontier set for the queues of hosts.
package queues

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// Settings are what a client sets for one host. They hold until they are changed, also over
// restarts.
type Settings struct {
	BlockedUntil time.Time      // nothing is leased before it; it is a pause of the host. Zero or past: not blocked
	Delay        *time.Duration // between requests; nil: that of the crawl
	Limit        uint64         // completed URLs after which nothing is leased any more; 0: none
}

// Store is what the settings of hosts are read from.
type Store interface {
	HostByName(string) (storage.Host, error)
	Mark(string) ([]byte, error)
	MarkNames(prefix, after string, most int) ([]string, error)
}

// Of returns a host that has URLs. The error is inspect.ErrUnknown if there is none.
func Of(s Store, name string) (storage.Host, error) {
	h, err := s.HostByName(name)
	if errors.Is(err, storage.ErrNotFound) || err == nil && h.URLs() == 0 {
		return h, fmt.Errorf("host %s: %w", name, inspect.ErrUnknown)
	}
	return h, err
}

// Read reads the settings of a host.
func Read(s Store, h *storage.Host, now time.Time) (q Settings, err error) {
	state, err := politeness.DecodeState(h.Politeness)
	if err != nil {
		return q, fmt.Errorf("host %s: %w", h.Name, err)
	}
	q.BlockedUntil = BlockedUntil(&state, now)
	if d := state.SetDelay; d == politeness.NoDelay {
		q.Delay = new(time.Duration)
	} else if d > 0 {
		q.Delay = &d
	}
	mark, err := s.Mark(marks.OfLimit(h.ID))
	if err == nil && len(mark) > 0 {
		q.Limit, err = DecodeLimit(h.ID, mark)
	}
	return q, err
}

// BlockedUntil returns the end of the pause of a host; zero: it has none.
func BlockedUntil(s *politeness.State, now time.Time) time.Time {
	for _, x := range s.Holds {
		if x.Reason == politeness.ReasonPause && x.Until.After(now) {
			return x.Until
		}
	}
	return time.Time{}
}

// DecodeLimit reads the mark with the limit of a host. The error is storage.ErrCorrupt.
func DecodeLimit(host storage.HostID, mark []byte) (uint64, error) {
	limit, err := strconv.ParseUint(string(mark), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("mark %s: %w", marks.OfLimit(host), storage.ErrCorrupt)
	}
	return limit, nil
}

// Commands returns the commands that change the politeness of a host.
func Commands(before, after *Settings, now time.Time) (list []frontier.Command) {
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

// Tighten makes other settings as strict as these.
func (q *Settings) Tighten(other *Settings) {
	if q.BlockedUntil.After(other.BlockedUntil) {
		other.BlockedUntil = q.BlockedUntil
	}
	if q.Delay != nil && (other.Delay == nil || *q.Delay > *other.Delay) {
		other.Delay = q.Delay
	}
	if q.Limit > 0 && (other.Limit == 0 || q.Limit < other.Limit) {
		other.Limit = q.Limit
	}
}

// HostsOf returns names of the hosts that clients have put into the queue of a key, those after a name.
func HostsOf(s Store, key, after string, most int) ([]string, error) {
	prefix := marks.OfQueueHost(key, "")
	names, err := s.MarkNames(prefix, prefix+after, most)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], prefix)
	}
	return names, err
}

// Delay returns the delay that clients have set for all hosts; nil: none.
func Delay(s Store) (*time.Duration, error) {
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
