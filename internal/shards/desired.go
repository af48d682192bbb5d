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

// Desired is the state of the whole crawl that the operator wants. It is a register of the cluster: each
// engine reads it when it opens, before its first request, and follows it.
type Desired struct {
	// Version is that of the format.
	Version int `json:"version"`
	// Paused: no request begins.
	Paused bool `json:"paused"`
}

// desiredVersion is the version of the format, and maxDesired bounds its bytes.
const (
	desiredVersion = 1
	maxDesired     = 64 << 10
)

// decodeDesired decodes the register. Without a message nothing is desired.
func decodeDesired(b []byte) (o Desired, err error) {
	if len(b) == 0 {
		return Desired{Version: desiredVersion}, nil
	}
	if len(b) > maxDesired {
		return o, fmt.Errorf("the desired state of the cluster has %d bytes, at most %d are allowed", len(b), maxDesired)
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("the desired state of the cluster cannot be read; look who else writes to the subject: %w", err)
	}
	if o.Version != desiredVersion {
		return o, fmt.Errorf("the desired state of the cluster has format %d, not %d; run the same version of amble on all nodes",
			o.Version, desiredVersion)
	}
	return o, nil
}

// desiredAt is the desired state at a sequence of its register.
type desiredAt struct {
	Desired
	sequence uint64
}

// desiredRegister is the register of the desired state, and what is known of it. Its methods may be called concurrently.
type desiredRegister struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	names  natsconn.Names
	log    *slog.Logger
	limit  time.Duration // of one answer of a server

	mu      sync.Mutex // guards what follows
	newest  desiredAt
	changed chan struct{} // closed when newest changes
	applied map[*run]uint64
	moved   chan struct{} // closed when applied changes
}

func openDesired(ctx context.Context, js jetstream.JetStream, o *Options, log *slog.Logger) (*desiredRegister, error) {
	stream, err := js.Stream(ctx, o.Names.Stream())
	if err != nil {
		return nil, fmt.Errorf("open the desired state of the cluster: %w: %w", storage.ErrLogDown, natsconn.Plain(err))
	}
	return &desiredRegister{
		js: js, stream: stream, names: o.Names, log: log, limit: o.Timeout, changed: make(chan struct{}),
		applied: make(map[*run]uint64), moved: make(chan struct{}),
	}, nil
}

func (o *desiredRegister) subject() string { return o.names.Subject("desired") }

// read reads the register from the servers. The error is storage.ErrLogDown if they do not answer.
func (o *desiredRegister) read(ctx context.Context) (desiredAt, error) {
	limited, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	m, err := o.stream.GetLastMsgForSubject(limited, o.subject())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		m, err = &jetstream.RawStreamMsg{}, nil
	}
	if err != nil {
		return desiredAt{}, fmt.Errorf("read the desired state of the cluster: %w: %w", storage.ErrLogDown, natsconn.Plain(err))
	}
	now, err := decodeDesired(m.Data)
	if err == nil {
		o.see(desiredAt{now, m.Sequence})
	}
	return desiredAt{now, m.Sequence}, err
}

// see takes a state that was read or delivered.
func (o *desiredRegister) see(seen desiredAt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if seen.sequence > o.newest.sequence {
		o.newest = seen
		close(o.changed)
		o.changed = make(chan struct{})
	}
}

// latest returns the newest state that is known, and a channel that is closed when there is another.
func (o *desiredRegister) latest() (desiredAt, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest, o.changed
}

// writeAttempts is how often a state is written when others write too.
const writeAttempts = 10

// change changes the state, and returns the sequence of the new one. If nothing changes, it is that of
// those in force.
func (o *desiredRegister) change(ctx context.Context, change func(*Desired)) (uint64, error) {
	var err error
	for range writeAttempts {
		var now desiredAt
		if now, err = o.read(ctx); err != nil {
			return 0, err
		}
		next := now.Desired
		if change(&next); next == now.Desired && now.sequence > 0 {
			return now.sequence, nil
		}
		var sequence uint64
		if sequence, err = o.write(ctx, next, now.sequence); err == nil {
			o.see(desiredAt{next, sequence})
			return sequence, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return 0, fmt.Errorf("write the desired state of the cluster: %w", err)
}

func (o *desiredRegister) write(ctx context.Context, next Desired, expected uint64) (uint64, error) {
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
		return 0, natsconn.Plain(err)
	}
	return ack.Sequence, nil
}

// followDesiredAgain is the pause before the register is followed again after a failure.
const followDesiredAgain = 500 * time.Millisecond

// follow follows the register until the context ends.
func (o *desiredRegister) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := o.followOnce(ctx); ctx.Err() == nil {
			o.log.Debug("the desired state is followed again", "error", err)
		}
		pause(ctx, followDesiredAgain)
	}
}

func (o *desiredRegister) followOnce(ctx context.Context) error {
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
		now, err := decodeDesired(m.Data())
		if err != nil {
			o.log.Error("the desired state of the cluster cannot be followed", "error", err)
			continue
		}
		o.see(desiredAt{now, meta.Sequence.Stream})
	}
}

// note notes which state the engine of a run has; forget, that there is no engine any more.
func (o *desiredRegister) note(r *run, sequence uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.applied[r] = sequence
	o.wake()
}

func (o *desiredRegister) forget(r *run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.applied, r)
	o.wake()
}

func (o *desiredRegister) wake() {
	close(o.moved)
	o.moved = make(chan struct{})
}

// wait waits until all engines of this node have the state with a sequence, or a newer one.
func (o *desiredRegister) wait(ctx context.Context, sequence uint64) error {
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

// SetPaused pauses all shards, or resumes them: also those that nobody owns now. When it returns this
// is durable, with a sequence, and all engines follow: WaitForDesired waits for those of a node.
func (n *Node) SetPaused(ctx context.Context, paused bool) (sequence uint64, err error) {
	return n.engines.desired.change(ctx, func(o *Desired) { o.Paused = paused })
}

// WaitForDesired waits until all engines of this node have the desired state with a sequence.
func (n *Node) WaitForDesired(ctx context.Context, sequence uint64) error {
	return n.engines.desired.wait(ctx, sequence)
}
