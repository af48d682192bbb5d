//go:build !core

package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/storage"
)

// scope is the changes of seeds of all shards of the cluster. It follows what is
// published, and all engines of the node read it. It may be used concurrently.
type scope struct {
	log     *slog.Logger
	streams *journal.Streams

	mu        sync.Mutex        // guards what follows; nothing blocks under it
	known     map[string][]byte // what was said last of a URL; nil: removed
	changes   []storage.SeedRow // in the order of the stream
	last      uint64            // sequence of the newest message that was read
	published uint64            // sequence of the newest message of this node
	more      chan struct{}     // closed with the next message
}

func newScope(streams *journal.Streams, log *slog.Logger) *scope {
	return &scope{log: log, streams: streams, known: make(map[string][]byte), more: make(chan struct{})}
}

// unknown returns the seeds that no message has named yet.
func (s *scope) unknown(of []crawl.Seed) (rows []storage.SeedRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range of {
		url := of[i].URL.String()
		if _, known := s.known[url]; !known {
			rows = append(rows, storage.SeedRow{URL: url, Value: of[i].Encode()})
		}
	}
	return rows
}

// differs reports whether the seeds of the settings of the cluster are others than those of a node.
func (s *scope) differs(own []crawl.Seed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	named := make(map[string]bool, len(own))
	for i := range own {
		url := own[i].URL.String()
		now, err := seeds.Decode(url, s.known[url])
		if named[url] = true; err != nil || s.known[url] == nil || !now.Equal(&own[i]) {
			return true
		}
	}
	for url, value := range s.known {
		if now, err := seeds.Decode(url, value); err == nil && now.Settings && !named[url] {
			return true
		}
	}
	return false
}

// retryRead is how long to wait before the scope is read again after an error.
const retryRead = time.Second

// warnAgain is how many attempts to read something fail between two messages about that.
const warnAgain = 60

// run reads what is published until the context ends.
func (s *scope) run(ctx context.Context) {
	for failed := 0; ctx.Err() == nil; failed++ {
		before := s.position()
		err := s.streams.Seeds(ctx, before, s.take)
		if s.position() > before {
			failed = 0
		}
		if ctx.Err() == nil && failed%warnAgain == 0 {
			s.log.Warn("the scope seeds of the cluster cannot be read; it is tried again", "error", err)
		}
		pause(ctx, retryRead)
	}
}

func (s *scope) position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// take takes a message. Several readers may give the same ones, each in their order.
func (s *scope) take(sequence uint64, changes []storage.SeedRow, unreadable error) {
	if unreadable != nil {
		s.log.Error("scope seeds cannot be read and are left out", "message", sequence, "error", unreadable)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sequence <= s.last {
		return
	}
	s.last = sequence
	for _, c := range changes {
		if s.isNews(&c) {
			s.known[c.URL] = c.Value
			s.changes = append(s.changes, c)
		}
	}
	close(s.more)
	s.more = make(chan struct{})
}

// readUpTo reads all that was published before a shard was claimed. So an engine has the scope of the
// one before.
func (s *scope) readUpTo(claim *journal.Shard) error { return claim.ReadScope(s.position(), s.take) }

// judgedBy returns the sequence of the newest message that an engine of this node may have judged by.
func (s *scope) judgedBy() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(s.last, s.published)
}

// reached waits until the scope is as new as the one that URLs were judged by. The error is ErrLogDown
// if that takes longer than a time.
func (s *scope) reached(ctx context.Context, sequence uint64, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within,
		fmt.Errorf("%w: scope seeds of message %d are missing", storage.ErrLogDown, sequence))
	defer cancel()
	for {
		s.mu.Lock()
		last, more := s.last, s.more
		s.mu.Unlock()
		if last >= sequence {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// isNews reports whether a change says something else than what is known. That a URL is in the scope is no news if more
// is known of it.
func (s *scope) isNews(c *storage.SeedRow) bool {
	before, known := s.known[c.URL]
	switch {
	case !known:
		return true
	case c.Value == nil || before == nil:
		return (c.Value == nil) != (before == nil)
	}
	return len(c.Value) > 0 && !bytes.Equal(c.Value, before)
}

// Seeds is part of crawl.Cluster.
func (s *scope) Seeds(from int) ([]storage.SeedRow, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[from:len(s.changes):len(s.changes)], s.more
}

// publish publishes those of the changes that the cluster does not know yet.
func (s *scope) publish(ctx context.Context, changes []storage.SeedRow) error {
	var fresh []storage.SeedRow
	s.mu.Lock()
	for _, c := range changes {
		if s.isNews(&c) {
			fresh = append(fresh, c)
		}
	}
	s.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	sequence, err := s.streams.PublishSeeds(ctx, fresh)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published = max(s.published, sequence)
	return nil
}

// others are what the engine of a shard has of the others: it implements crawl.Cluster.
type others struct {
	*scope
	owners *owners
	shards int             // of the cluster
	held   context.Context // of the holding of the shard
}

// PublishSeeds is part of crawl.Cluster.
func (o *others) PublishSeeds(changes []storage.SeedRow) error {
	err := o.scope.publish(o.held, changes)
	if err != nil && o.held.Err() != nil {
		return errors.Join(storage.ErrLost, err)
	}
	return err
}
