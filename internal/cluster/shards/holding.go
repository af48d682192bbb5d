//go:build !core

package shards

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/storage"
)

// permits are those of the requests of an engine: its node owns the shard and is trusted.
type permits struct{ holding *membership.Holding }

// Check is part of crawl.Permits.
func (p permits) Check() error { return p.holding.Check() }

// Begin is part of crawl.Permits.
func (p permits) Begin(ctx context.Context, admitted *frontier.GateRequest) (crawl.Permit, error) {
	r, err := p.holding.Begin(ctx, grantKeys(admitted)...)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// heldLog is the log of a shard for as long as the node holds the shard. After that all of it returns
// storage.ErrLost, so that the engine ends at once and does not wait for the log to come back.
type heldLog struct {
	*journal.Shard
	held  context.Context
	scope *scope
	wait  time.Duration // for scope seeds that URLs were judged by
	read  atomic.Uint64 // the sequence up to which all is committed that others have published
}

// lost returns the error of a call, or ErrLost if the shard is not held any more.
func (l *heldLog) lost(err error) error {
	if err != nil && l.held.Err() != nil {
		return fmt.Errorf("%w: %v", storage.ErrLost, err)
	}
	return err
}

// Append is part of crawl.Journal.
func (l *heldLog) Append(number uint64, record []byte) (sequence uint64, err error) {
	sequence, err = l.Shard.Append(number, record)
	return sequence, l.lost(err)
}

// Replay is part of crawl.Journal.
func (l *heldLog) Replay(from storage.LogPosition, apply func(sequence uint64, record []byte) error) error {
	return l.lost(l.Shard.Replay(from, apply))
}

// Publish is part of crawl.Journal.
func (l *heldLog) Publish(number uint64, urls []storage.Discovery) error {
	return l.lost(l.Shard.PublishBy(l.scope.judgedBy(), number, urls))
}

// Incoming is part of crawl.Journal. URLs are judged by a scope no older than that of who has found them.
func (l *heldLog) Incoming(
	ctx context.Context, after uint64, take func(sequence uint64, urls []storage.Discovery) error,
) error {
	return l.lost(l.Messages(ctx, after, func(m *journal.Message) error {
		err := l.scope.reached(ctx, m.Scope, l.wait)
		if err == nil && !m.IsMark {
			err = take(m.Sequence, m.URLs)
		}
		if err == nil {
			l.read.Store(max(l.read.Load(), m.Sequence))
		}
		return err
	}))
}
