//go:build !core

package shards

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/records/wire"
)

// A quota divides a number among the shards: a register has the part of each, and only the owner of a
// shard changes its part. A write is conditional on the register as the writer knows it, so the sum is never
// beyond the number, whoever dies in between. What an owner knows of its part counts when it has written it.

// pageQuotaVersion is the version of the register.
const pageQuotaVersion = 1

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
	b := binary.AppendUvarint([]byte{pageQuotaVersion}, uint64(len(p)))
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
	if version := d.Byte(); version != pageQuotaVersion {
		return nil, fmt.Errorf("its version is %d, not %d: use the same amble on all nodes", version, pageQuotaVersion)
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

// pageQuota is the register as this node knows it. It may be used concurrently.
type pageQuota struct {
	followed[parts]
	shards int
}

func newPageQuota(register register, shards int, log *slog.Logger) *pageQuota {
	return &pageQuota{followed[parts]{
		name: "what is divided among the shards", log: log, register: register, encode: parts.encode,
		decode: func(b []byte) (parts, error) { return decodeParts(b, shards) },
		newest: make(parts), changed: make(chan struct{}),
	}, shards}
}

// assign changes the part of a shard: next returns it, given all parts as they are. The errors are those of next
// and mayWrite, which is checked after each read: what is read while it is true cannot be replaced by another
// owner and written by this one.
func (a *pageQuota) assign(ctx context.Context, s cluster.Shard, mayWrite func() error,
	next func(parts) (uint64, error)) (part uint64, err error) {
	_, err = a.change(ctx, func(all parts) (parts, error) {
		err := mayWrite()
		if err == nil {
			part, err = next(all)
		}
		changed := maps.Clone(all)
		if changed[s] = part; part == 0 {
			delete(changed, s)
		}
		return changed, err
	})
	return part, err
}
