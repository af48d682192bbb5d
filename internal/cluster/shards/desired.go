//go:build !core

package shards

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/optout"
)

// Desired is the state of the whole crawl that the operator wants. It is a register of the cluster: each
// engine reads it when it opens, before its first request, and follows it.
type Desired struct {
	// Version is that of the format.
	Version int `json:"version"`
	// Paused: no request begins.
	Paused bool `json:"paused"`
	// OptOuts are those that commands have recorded, at most one for a scope and value.
	OptOuts []optout.Entry `json:"opt_outs,omitempty"`
	// Settings is a merge patch (RFC 7396) of the config file of each node; empty: there is none.
	Settings json.RawMessage `json:"settings,omitempty"`
	// Shared are the settings that all nodes have in common, by their keys: politeness and identity. They are in force
	// in place of those of the config file of a node, and Settings in place of them; nil: no node has said its own.
	Shared map[string]any `json:"shared,omitempty"`
	// Seeded: the seeds of the settings of a node are those of the cluster.
	Seeded bool `json:"seeded,omitempty"`
	// Reloads counts the commands to read the config files again.
	Reloads uint64 `json:"reloads,omitempty"`
	// Deletions are those that some shards have not carried out.
	Deletions []Deletion `json:"deletions,omitempty"`
	// Erasures are all that were commanded, in the order of their numbers: nodes that were away find them here.
	Erasures []Erasure `json:"erasures,omitempty"`
}

// desiredVersion is the version of the format, and maxDesired bounds its bytes: a message has at most 1 MiB.
const (
	desiredVersion = 1
	maxDesired     = 768 << 10
)

// encode encodes the register.
func (o Desired) encode() []byte {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // its parts were decoded or made by this package
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
	for i, e := range o.OptOuts {
		if o.OptOuts[i], err = optout.New(e); err != nil {
			return o, err
		}
	}
	if len(o.Settings) > 0 && o.Settings[0] != '{' {
		return o, errors.New("its settings are no object")
	}
	return o, nil
}

// errFull is the error of a change that the register has no room for.
var errFull = fmt.Errorf(
	"the register of the cluster has no room for more than %d KiB of opt-outs, settings and erasures: put "+
		"opt-outs into the file of consent.optout on each node", maxDesired>>10)

// target is what all engines of a node have to have. It is not changed.
type target struct {
	Desired
	sequence uint64      // of the register
	version  uint64      // counts the targets of this node; 0: the register was not read yet
	live     *crawl.Live // nil: those of Options.Crawl
	refused  error       // why this node does not follow the settings
}

// desired is the register of the desired state, what it and the settings of this node come to, and which
// engines of this node have which. It may be used concurrently.
type desired struct {
	followed[Desired]

	applying sync.Mutex // guards what follows; nothing blocks under it
	target   target
	applied  map[*run]uint64 // versions of targets
	moved    chan struct{}   // closed when one of them changes
}

func newDesired(register register, log *slog.Logger) *desired {
	return &desired{followed: followed[Desired]{
		name: "the desired state of the cluster", log: log, register: register, encode: Desired.encode,
		decode: decodeDesired, newest: Desired{Version: desiredVersion}, changed: make(chan struct{}),
	}, applied: make(map[*run]uint64), moved: make(chan struct{})}
}

// note notes which target the engine of a run has; forget, that there is no engine any more.
func (o *desired) note(r *run, version uint64) {
	o.applying.Lock()
	defer o.applying.Unlock()
	if before, known := o.applied[r]; !known || before != version {
		o.applied[r] = version
		o.wake()
	}
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

// aim replaces the target by what next makes of it.
func (o *desired) aim(next func(*target)) {
	o.applying.Lock()
	defer o.applying.Unlock()
	next(&o.target)
	o.target.version++
	o.wake()
}

// current returns the target, and a channel that is closed when it may be another.
func (o *desired) current() (target, <-chan struct{}) {
	o.applying.Lock()
	defer o.applying.Unlock()
	return o.target, o.moved
}

// reached returns the target as soon as it is that of a sequence, or of a later one.
func (o *desired) reached(ctx context.Context, sequence uint64) (target, error) {
	for {
		t, moved := o.current()
		if t.version > 0 && t.sequence >= sequence {
			return t, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return t, ctx.Err()
		}
	}
}

// wait waits until all engines of this node have the state with a sequence, or a newer one.
func (o *desired) wait(ctx context.Context, sequence uint64) error {
	for {
		o.applying.Lock()
		behind := o.target.sequence < sequence
		for _, applied := range o.applied {
			behind = behind || applied < o.target.version
		}
		moved, refused := o.moved, o.target.refused
		o.applying.Unlock()
		if !behind {
			return refused
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// followDesired makes the desired state that of the node, until the context ends.
func (e *engines) followDesired(ctx context.Context) {
	d := e.desired
	var before Desired
	for first := true; ; first = false {
		now, sequence, changed := d.latest()
		if first {
			// the process has just read its file: see Node.Agree
			before.Reloads, before.Shared = now.Reloads, now.Shared
		}
		e.shared.SetOptOuts(now.OptOuts)
		previous, _ := d.current()
		refused := previous.refused
		if !bytes.Equal(now.Settings, before.Settings) || now.Reloads != before.Reloads ||
			len(different(now.Shared, before.Shared)) > 0 {
			refused = e.adopt(ctx, now.Shared, now.Settings)
		}
		before = now
		d.aim(func(t *target) { t.Desired, t.sequence, t.refused = now, sequence, refused })
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// errNoSettings is the error of a process whose settings cannot change.
var errNoSettings = errors.New("the settings of this process cannot change while it runs")

// command changes the desired state, and returns the sequence of it. The error is storage.ErrLogDown while the
// servers do not answer, or that of next.
func (d *desired) command(ctx context.Context, limit time.Duration, next func(*Desired) error) (sequence uint64,
	err error) {
	if err := d.read(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sequence, err = d.change(ctx, func(now Desired) (Desired, error) {
		now.OptOuts, now.Deletions = slices.Clone(now.OptOuts), cloneDeletions(now.Deletions)
		now.Erasures = cloneErasures(now.Erasures)
		err := next(&now)
		if err == nil && len(now.encode()) > maxDesired {
			err = errFull
		}
		return now, err
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return 0, fmt.Errorf("change the desired state of the cluster: %w", err)
	}
	return sequence, nil
}

// command changes the desired state: see desired.command.
func (n *Node) command(ctx context.Context, next func(*Desired) error) (uint64, error) {
	return n.engines.desired.command(ctx, n.engines.o.Timeout, next)
}

// SetPaused pauses all shards, or resumes them: also those that nobody owns now. When it returns this
// is durable, with a sequence, and all engines follow: WaitForDesired waits for those of a node. The error is
// storage.ErrLogDown while the servers do not answer.
func (n *Node) SetPaused(ctx context.Context, paused bool) (sequence uint64, err error) {
	return n.command(ctx, func(d *Desired) error {
		if d.Paused == paused {
			return errUnchanged
		}
		d.Paused = paused
		return nil
	})
}

// SetOptOut records an opt-out for all shards, or with remove removes it: found says whether there was one
// of its scope and value. Else it is as SetPaused.
func (n *Node) SetOptOut(ctx context.Context, e optout.Entry, remove bool) (found bool, sequence uint64, err error) {
	sequence, err = n.command(ctx, func(d *Desired) error {
		before := len(d.OptOuts)
		same := func(o optout.Entry) bool { return o.Scope == e.Scope && o.Value == e.Value }
		d.OptOuts = slices.DeleteFunc(d.OptOuts, same)
		removed := len(d.OptOuts) < before
		found = found || removed // by a write of this command without an answer, if it is tried again
		if !remove {
			d.OptOuts = append(d.OptOuts, e)
		} else if !removed {
			return errUnchanged
		}
		return nil
	})
	return found, sequence, err
}

// WaitForDesired waits until all engines of this node have the desired state with a sequence. It returns why
// this node does not follow the settings of the cluster, if it does not.
func (n *Node) WaitForDesired(ctx context.Context, sequence uint64) error {
	return n.engines.desired.wait(ctx, sequence)
}

// DesiredSequence returns the sequence of the newest desired state that this node knows.
func (n *Node) DesiredSequence() uint64 {
	_, sequence, _ := n.engines.desired.latest()
	return sequence
}
