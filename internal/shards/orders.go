package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/natsconn"
	"github.com/amble-crawler/amble/storage"
)

// Orders are what the operator wants of the whole crawl. They are a register of the cluster: each engine
// reads it when it opens, before its first request, and follows it.
type Orders struct {
	// Version is that of the format.
	Version int `json:"version"`
	// Paused: no request begins.
	Paused bool `json:"paused"`
}

// ordersVersion is the version of the format, and maxOrders bounds its bytes.
const (
	ordersVersion = 1
	maxOrders     = 64 << 10
)

// decodeOrders decodes the register; none are the zero Orders.
func decodeOrders(b []byte) (o Orders, err error) {
	if len(b) == 0 {
		return Orders{Version: ordersVersion}, nil
	}
	if len(b) > maxOrders {
		return o, fmt.Errorf("the orders of the cluster have %d bytes, at most %d are allowed", len(b), maxOrders)
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("the orders of the cluster cannot be read; look who else writes to the subject: %w", err)
	}
	if o.Version != ordersVersion {
		return o, fmt.Errorf("the orders of the cluster have format %d, not %d; run the same version of amble on all nodes",
			o.Version, ordersVersion)
	}
	return o, nil
}

// ordered are the orders of a register at a sequence.
type ordered struct {
	Orders
	sequence uint64
}

// orders is the register, and what is known of it. Its methods may be called concurrently.
type orders struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	names  natsconn.Names
	log    *slog.Logger
	limit  time.Duration // of one answer of a server

	mu      sync.Mutex // guards what follows
	newest  ordered
	changed chan struct{} // closed when newest changes
	applied map[*run]uint64
	moved   chan struct{} // closed when applied changes
}

func openOrders(ctx context.Context, js jetstream.JetStream, o *Options, log *slog.Logger) (*orders, error) {
	stream, err := js.Stream(ctx, o.Names.Stream())
	if err != nil {
		return nil, fmt.Errorf("open the orders of the cluster: %w: %w", storage.ErrLogDown, err)
	}
	return &orders{
		js: js, stream: stream, names: o.Names, log: log, limit: o.Timeout, changed: make(chan struct{}),
		applied: make(map[*run]uint64), moved: make(chan struct{}),
	}, nil
}

func (o *orders) subject() string { return o.names.Subject("orders") }

// read reads the register from the servers. The error is storage.ErrLogDown if they do not answer.
func (o *orders) read(ctx context.Context) (ordered, error) {
	limited, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	m, err := o.stream.GetLastMsgForSubject(limited, o.subject())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		m, err = &jetstream.RawStreamMsg{}, nil
	}
	if err != nil {
		return ordered{}, fmt.Errorf("read the orders of the cluster: %w: %w", storage.ErrLogDown, err)
	}
	now, err := decodeOrders(m.Data)
	if err == nil {
		o.see(ordered{now, m.Sequence})
	}
	return ordered{now, m.Sequence}, err
}

// see takes orders that were read or delivered.
func (o *orders) see(seen ordered) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if seen.sequence > o.newest.sequence {
		o.newest = seen
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// latest returns the newest orders that are known, and a channel that is closed when there are others.
func (o *orders) latest() (ordered, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest, o.changed
}

// writeAttempts is how often orders are written again after others.
const writeAttempts = 10

// change changes the orders, and returns the sequence of the new ones. If nothing changes, it is that of
// those in force.
func (o *orders) change(ctx context.Context, change func(*Orders)) (uint64, error) {
	var err error
	for range writeAttempts {
		var now ordered
		if now, err = o.read(ctx); err != nil {
			return 0, err
		}
		next := now.Orders
		if change(&next); next == now.Orders && now.sequence > 0 {
			return now.sequence, nil
		}
		var sequence uint64
		if sequence, err = o.write(ctx, next, now.sequence); err == nil {
			o.see(ordered{next, sequence})
			return sequence, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return 0, fmt.Errorf("write the orders of the cluster: %w", err)
}

func (o *orders) write(ctx context.Context, next Orders, expected uint64) (uint64, error) {
	data, err := json.Marshal(next)
	if err != nil {
		return 0, err
	}
	limited, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	m := nats.NewMsg(o.subject())
	m.Data = data
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	ack, err := o.js.PublishMsg(limited, m, jetstream.WithExpectLastSequencePerSubject(expected),
		jetstream.WithExpectStream(o.names.Stream()))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// followOrdersAgain is the pause before the register is followed again after a failure.
const followOrdersAgain = 500 * time.Millisecond

// follow follows the register until the context ends.
func (o *orders) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := o.followOnce(ctx); ctx.Err() == nil {
			o.log.Debug("the orders are followed again", "error", err)
		}
		pause(ctx, followOrdersAgain)
	}
}

func (o *orders) followOnce(ctx context.Context) error {
	c, err := o.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{o.subject()}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
		MaxResetAttempts: 1,
	})
	if err != nil {
		return err
	}
	it, err := c.Messages(jetstream.PullHeartbeat(5 * time.Second))
	if err != nil {
		return err
	}
	defer it.Stop()
	defer context.AfterFunc(ctx, it.Stop)()
	for {
		m, err := it.Next()
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		now, err := decodeOrders(m.Data())
		if err != nil {
			o.log.Error("the orders of the cluster cannot be followed", "error", err)
			continue
		}
		o.see(ordered{now, meta.Sequence.Stream})
	}
}

// note notes which orders the engine of a run follows; forget, that there is none any more.
func (o *orders) note(r *run, sequence uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.applied[r] = sequence
	o.wake()
}

func (o *orders) forget(r *run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.applied, r)
	o.wake()
}

func (o *orders) wake() {
	close(o.moved)
	o.moved = make(chan struct{})
}

// wait waits until all engines of this node follow the orders with a sequence, or newer ones.
func (o *orders) wait(ctx context.Context, sequence uint64) error {
	for {
		o.mu.Lock()
		behind := o.newest.sequence < sequence
		for _, applied := range o.applied {
			behind = behind || applied < sequence
		}
		changed, moved := o.changed, o.moved
		o.mu.Unlock()
		if !behind {
			return nil
		}
		select {
		case <-changed:
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// SetPaused pauses all shards, or resumes them: also those that nobody owns now. When it returns the order
// is durable, and all engines follow it: WaitForOrders waits for those of a node.
func (n *Node) SetPaused(ctx context.Context, paused bool) (order uint64, err error) {
	return n.engines.orders.change(ctx, func(o *Orders) { o.Paused = paused })
}

// WaitForOrders waits until all engines of this node follow an order.
func (n *Node) WaitForOrders(ctx context.Context, sequence uint64) error {
	return n.engines.orders.wait(ctx, sequence)
}
