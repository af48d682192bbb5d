//go:build !core

package shards

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/records/wire"
)

// A crawl with exit_when_done is over when the engines of all shards have nothing to do, and have read all
// that was published for them. The owner of shard 0 finds that out. It publishes a mark to all shards, and
// queries each whether it is at rest and has read the mark; then it does the same again. If no shard has
// committed anything between its two answers, there was an instant between them, that of the second mark,
// at which none of them did anything and nothing unread was there. From their second answers on the engines
// take no URLs from users, so it stays so. If it is not over after all, the next query has them take URLs again.
//
// With crawl.max_pages the crawl is over too when all pages are allotted and fetched. A shard with nothing to
// do gives back what it does not need, and others may take it. So all shards have to judge by one register.

// rest is the answer of a shard to whether it is at rest.
type rest struct {
	epoch  uint64 // of its owner
	done   bool   // it does nothing, and has nothing to do before something else happens
	number uint64 // of its last commit
	read   uint64 // the sequence up to which it has read what others have published
	pages  uint64 // the sequence of the register of pages by which it has nothing to do
}

func (r *rest) append(b []byte) []byte {
	done := byte(0)
	if r.done {
		done = 1
	}
	b = append(binary.AppendUvarint(b, r.epoch), done)
	b = binary.AppendUvarint(binary.AppendUvarint(b, r.number), r.read)
	return binary.AppendUvarint(b, r.pages)
}

func decodeRest(d *wire.Decoder) (r rest, err error) {
	r.epoch = d.Uvarint()
	done := d.Byte()
	d.Require(done <= 1)
	r.done, r.number, r.read, r.pages = done == 1, d.Uvarint(), d.Uvarint(), d.Uvarint()
	return r, d.End()
}

// endWatch finds out when the crawl is over, and tells all nodes.
type endWatch struct {
	census
	o       *Options
	log     *slog.Logger
	nc      *nats.Conn
	engines *engines
}

// census finds out whether all shards are at rest.
type census struct {
	shards int
	mark   func(context.Context) (uint64, error)                                 // journal.Streams.Mark
	rest   func(ctx context.Context, s cluster.Shard, closed bool) (rest, error) // whether a shard is at rest

	// mayBeClosed: some shards may take no URLs from users since a query that closed them. A query of all opens them.
	mayBeClosed bool
}

// decider is the shard whose owner decides.
const decider = cluster.Shard(0)

// How long the decider waits for shards to read a mark, and how often it looks.
const (
	markWait  = 10 * time.Second
	markEvery = 20 * time.Millisecond
)

// run decides for as long as this node owns the decider, until the context ends.
func (e *endWatch) run(ctx context.Context) {
	ticker := time.NewTicker(e.o.EndEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if e.engines.of(decider) == nil {
			e.mayBeClosed = true // by another decider
			continue
		}
		epochs, over, err := e.isOver(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			e.log.Debug("it is not known whether the crawl is over", "error", err)
		case over && e.engines.of(decider) != nil:
			e.log.Info("all shards are done: the crawl is over")
			if err := e.nc.Publish(e.subject(), appendEnd(nil, epochs)); err != nil {
				e.log.Warn("cannot tell the nodes that the crawl is over; it is tried again", "error",
					natsconn.Plain(err))
			}
		}
	}
}

// isOver reports whether the crawl is over, and the epochs of all shards.
func (c *census) isOver(ctx context.Context) (epochs []uint64, over bool, err error) {
	if _, over, err = c.queryAll(ctx, 0, false); !over {
		return nil, false, err
	}
	var before []rest
	for _, closed := range []bool{false, true} {
		mark, err := c.mark(ctx)
		if err != nil {
			return nil, false, err
		}
		all, over, err := c.queryAll(ctx, mark, closed)
		if !over {
			return nil, false, err
		}
		for s := range before {
			if all[s].epoch != before[s].epoch || all[s].number != before[s].number {
				return nil, false, nil
			}
		}
		for s := range all {
			if all[s].pages != all[0].pages || before != nil && all[s].pages != before[s].pages {
				return nil, false, nil
			}
		}
		before = all
	}
	for s := range before {
		epochs = append(epochs, before[s].epoch)
	}
	return epochs, true, nil
}

// queryAll queries all shards whether they are at rest and have read up to a mark. over is true if all are; the
// answers are then complete. It waits for the mark to be read. When one is not at rest the others need not answer,
// unless some may be closed.
func (c *census) queryAll(ctx context.Context, mark uint64, closed bool) (all []rest, over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, markWait)
	defer cancel()
	all = make([]rest, c.shards)
	var once sync.Once
	var unanswered atomic.Bool
	over = true
	sideBySide(c.shards, func(i int) {
		for all[i].read < mark || !all[i].done {
			r, restErr := c.rest(ctx, cluster.Shard(i), closed)
			if restErr != nil || !r.done {
				unanswered.CompareAndSwap(false, restErr != nil)
				once.Do(func() {
					over, err = false, restErr
					if closed || !c.mayBeClosed {
						cancel() // the others need not answer
					}
				})
				return
			}
			if all[i] = r; r.read < mark {
				pause(ctx, markEvery)
			}
		}
	})
	c.mayBeClosed = closed || c.mayBeClosed && unanswered.Load()
	return all, over, err
}

// restOf returns whether a shard is at rest, by its owner.
func (o *owners) restOf(ctx context.Context, s cluster.Shard, closed bool) (rest, error) {
	query := []byte{0}
	if closed {
		query[0] = 1
	}
	answer, err := o.query(ctx, s, queryRest, query)
	if err != nil {
		return rest{}, err
	}
	d := wire.NewDecoder(answer)
	return decodeRest(&d)
}

// subject is where the nodes learn that the crawl is over.
func (e *endWatch) subject() string { return e.o.Names.Subject("end") }

// appendEnd appends the message that the crawl is over: the version, the number of shards and their epochs.
func appendEnd(b []byte, epochs []uint64) []byte {
	b = binary.AppendUvarint(append(b, queryVersion), uint64(len(epochs)))
	for _, epoch := range epochs {
		b = binary.AppendUvarint(b, epoch)
	}
	return b
}

// decodeEnd is the inverse of appendEnd, for so many shards.
func decodeEnd(b []byte, shards int) (epochs []uint64, err error) {
	d := wire.NewDecoder(b)
	d.Require(d.Byte() == queryVersion)
	d.Require(d.Uvarint() == uint64(shards))
	for range shards {
		if !d.OK() {
			break
		}
		epochs = append(epochs, d.Uvarint())
	}
	return epochs, d.End()
}

// maxEnds bounds the messages of the end that wait.
const maxEnds = 16

// wait waits until the crawl is over. The error is that of the context, or of the connection.
func (e *endWatch) wait(ctx context.Context) error {
	ended := make(chan *nats.Msg, maxEnds)
	sub, err := e.nc.ChanSubscribe(e.subject(), ended)
	if err != nil {
		return fmt.Errorf("wait for the end of the crawl: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection may be gone
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-ended:
			epochs, err := decodeEnd(m.Data, e.o.Cluster.Shards)
			if err != nil {
				e.log.Warn("a message about the end of the crawl cannot be read", "error", err)
				continue
			}
			if e.engines.tookPart(epochs) {
				return nil
			}
		}
	}
}

// tookPart reports whether this node has been part of a crawl whose shards had these epochs at its end. A
// process that was started after that has others.
func (e *engines) tookPart(epochs []uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for h := range e.open {
		if epochs[h.Shard()] == uint64(h.Epoch()) {
			return true
		}
	}
	return len(e.open) == 0
}

// leaveAtEnd makes the node leave when the crawl is over, until the context ends.
func (n *Node) leaveAtEnd(ctx context.Context, left *outputLeft) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := n.engines
	e := &endWatch{
		census: census{shards: all.o.Cluster.Shards, mark: all.streams.Mark, rest: all.owners.restOf,
			mayBeClosed: true},
		o: all.o, log: all.log, nc: n.nc, engines: all,
	}
	wg.Go(func() { e.run(ctx) })
	switch err := e.wait(ctx); {
	case err == nil:
		n.engines.finish()
		close(n.over)
		left.finish(ctx) // while the log can be read
		n.member.Leave()
		<-ctx.Done() // the decider tells the others again until it has given up its shard
	case !errors.Is(err, context.Canceled):
		e.log.Error("the end of the crawl will not be noticed; restart this node", "error", err)
	}
}
