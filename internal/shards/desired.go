package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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

// encode encodes the register.
func (o Desired) encode() []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // a struct of numbers and booleans
	}
	return b
}

// decodeDesired decodes the register. Without a message nothing is desired.
func decodeDesired(b []byte) (o Desired, err error) {
	if len(b) == 0 {
		return Desired{Version: desiredVersion}, nil
	}
	if len(b) > maxDesired {
		return o, fmt.Errorf("it has %d bytes, at most %d are allowed", len(b), maxDesired)
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("it is no JSON; look who else writes to the subject: %w", err)
	}
	if o.Version != desiredVersion {
		return o, fmt.Errorf("its format is %d, not %d; run the same version of amble on all nodes",
			o.Version, desiredVersion)
	}
	return o, nil
}

// desired is the register of the desired state, and which engines of this node have which. It may be used
// concurrently.
type desired struct {
	followed[Desired]

	applying sync.Mutex // guards what follows; nothing blocks under it
	applied  map[*run]uint64
	moved    chan struct{} // closed when applied changes
}

func newDesired(register register, log *slog.Logger) *desired {
	return &desired{followed: followed[Desired]{
		name: "the desired state of the cluster", log: log, register: register, encode: Desired.encode,
		decode: decodeDesired, newest: Desired{Version: desiredVersion}, changed: make(chan struct{}),
	}, applied: make(map[*run]uint64), moved: make(chan struct{})}
}

// note notes which state the engine of a run has; forget, that there is no engine any more.
func (o *desired) note(r *run, sequence uint64) {
	o.applying.Lock()
	defer o.applying.Unlock()
	o.applied[r] = sequence
	o.wake()
}

func (o *desired) forget(r *run) {
	o.applying.Lock()
	defer o.applying.Unlock()
	delete(o.applied, r)
	o.wake()
}

func (o *desired) wake() {
	close(o.moved)
	o.moved = make(chan struct{})
}

// wait waits until all engines of this node have the state with a sequence, or a newer one.
func (o *desired) wait(ctx context.Context, sequence uint64) error {
	for {
		_, newest, changed := o.latest()
		behind := newest < sequence
		o.applying.Lock()
		for _, applied := range o.applied {
			behind = behind || applied < sequence
		}
		moved := o.moved
		o.applying.Unlock()
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
// is durable, with a sequence, and all engines follow: WaitForDesired waits for those of a node. The error is
// storage.ErrLogDown while the servers do not answer.
func (n *Node) SetPaused(ctx context.Context, paused bool) (sequence uint64, err error) {
	d := n.engines.desired
	if err := d.read(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, n.engines.o.Timeout)
	defer cancel()
	sequence, err = d.change(ctx, func(now Desired) (Desired, error) {
		if now.Paused == paused {
			return now, errUnchanged
		}
		now.Paused = paused
		return now, nil
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return 0, fmt.Errorf("write the desired state of the cluster: %w", err)
	}
	return sequence, nil
}

// WaitForDesired waits until all engines of this node have the desired state with a sequence.
func (n *Node) WaitForDesired(ctx context.Context, sequence uint64) error {
	return n.engines.desired.wait(ctx, sequence)
}
