package shards

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/wire"
)

// An allotment divides a number among the shards: a register has the part of each, and only the owner of a
// shard changes its part. A write is conditional on the register as the writer knows it, so the sum is never
// beyond the number, whoever dies in between. What an owner knows of its part counts when it has written it.

// allotmentVersion is the version of the register.
const allotmentVersion = 1

// parts are the parts of shards that have one.
type parts map[cluster.Shard]uint64

func (p parts) sum() (sum uint64) {
	for _, n := range p {
		sum += n
	}
	return sum
}

// encode encodes the parts: the version, their number, and the shard and the part of each, in the order of
// the shards.
func (p parts) encode() []byte {
	b := binary.AppendUvarint([]byte{allotmentVersion}, uint64(len(p)))
	for _, s := range slices.Sorted(maps.Keys(p)) {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(s)), p[s])
	}
	return b
}

// maxPart bounds a part, so that no sum overflows.
const maxPart = 1 << 46

// decodeParts is the inverse of encode, for so many shards.
func decodeParts(b []byte, shards int) (parts, error) {
	p := make(parts)
	if len(b) == 0 {
		return p, nil
	}
	d := wire.NewDecoder(b)
	if version := d.Byte(); version != allotmentVersion {
		return nil, fmt.Errorf("its version is %d, not %d: use the same amble on all nodes", version, allotmentVersion)
	}
	last := -1
	for n := d.UvarintMax(uint64(shards)); n > 0 && d.OK(); n-- {
		s := int(d.UvarintMax(uint64(shards - 1)))
		d.Require(s > last)
		last = s
		p[cluster.Shard(s)] = d.UvarintMax(maxPart)
	}
	return p, d.End()
}

// register is a journal.Register.
type register interface {
	Read(context.Context) (data []byte, sequence uint64, err error)
	Write(ctx context.Context, data []byte, expected uint64) (uint64, error)
	Values(ctx context.Context, take func(data []byte, sequence uint64)) error
}

// allotment is the register as this node knows it. It may be used concurrently.
type allotment struct {
	log      *slog.Logger
	register register
	shards   int

	mu       sync.Mutex // guards what follows; nothing blocks under it
	parts    parts      // they are not changed
	sequence uint64
	changed  chan struct{} // closed with the next change
}

func newAllotment(register register, shards int, log *slog.Logger) *allotment {
	return &allotment{log: log, register: register, shards: shards, parts: make(parts), changed: make(chan struct{})}
}

// run reads what is written until the context ends.
func (a *allotment) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := a.register.Values(ctx, a.take); ctx.Err() == nil {
			a.log.Warn("what is divided among the shards cannot be read; it is tried again", "error", err)
			pause(ctx, retryRead)
		}
	}
}

// take takes a value of the register.
func (a *allotment) take(data []byte, sequence uint64) {
	p, err := decodeParts(data, a.shards)
	if err != nil {
		a.log.Error("what is divided among the shards cannot be read", "error", err)
		return
	}
	a.see(p, sequence)
}

func (a *allotment) see(p parts, sequence uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if sequence <= a.sequence {
		return
	}
	a.parts, a.sequence = p, sequence
	close(a.changed)
	a.changed = make(chan struct{})
}

// latest returns the parts, their sequence, and a channel that is closed when there are others.
func (a *allotment) latest() (parts, uint64, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parts, a.sequence, a.changed
}

// errUnchanged is what a change returns that changes nothing.
var errUnchanged = errors.New("nothing changes")

// retryWrite is how long to wait before a register is written again.
const retryWrite = 20 * time.Millisecond

// change changes the part of a shard: next returns it, given all parts as they are. It is tried again until it
// is written, the context ends or next returns an error. mayWrite is checked after each read: what is read
// while it is true cannot be replaced by another owner and written by this one.
func (a *allotment) change(ctx context.Context, s cluster.Shard, mayWrite func() error,
	next func(parts) (uint64, error)) (part uint64, err error) {
	for {
		all, sequence, _ := a.latest()
		if err := errors.Join(mayWrite(), ctx.Err()); err != nil {
			return 0, err
		}
		if part, err = next(all); err != nil {
			return 0, err
		}
		changed := maps.Clone(all)
		if changed[s] = part; part == 0 {
			delete(changed, s)
		}
		written, err := a.register.Write(ctx, changed.encode(), sequence)
		if err == nil {
			a.see(changed, written)
			return part, nil
		}
		pause(ctx, retryWrite)
		if data, sequence, err := a.register.Read(ctx); err == nil && sequence > 0 {
			a.take(data, sequence)
		}
	}
}
