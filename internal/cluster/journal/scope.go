//go:build !core

package journal

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Changes of seeds are in PREFIX.scope, in the stream of the logs: so whoever has read it up to a claim knows all that
// the shard's owners before knew.

// scopeVersion is the version of the messages with seeds. Those of version 1 are URLs without more.
const scopeVersion = 2

// Bounds of one message: seeds, and bytes unless one seed alone has more.
const (
	maxScopeSeeds = 64
	maxScopeBytes = 256 << 10
)

// appendScope appends a message with changes of seeds, of the oldest version that can have them. FORMAT.md describes
// its bytes.
func appendScope(b []byte, changes []storage.SeedRow) []byte {
	version := byte(1)
	for _, c := range changes {
		if c.Value == nil || len(c.Value) > 0 {
			version = scopeVersion
		}
	}
	b = binary.AppendUvarint(append(b, version), uint64(len(changes)))
	for _, c := range changes {
		b = append(binary.AppendUvarint(b, uint64(len(c.URL))), c.URL...)
		switch {
		case version == 1:
		case c.Value == nil:
			b = append(b, 0)
		default:
			b = binary.AppendUvarint(b, uint64(len(c.Value))+1)
			b = append(b, c.Value...)
		}
	}
	return b
}

// decodeScope is the inverse of appendScope.
func decodeScope(b []byte) (changes []storage.SeedRow, err error) {
	d := wire.NewDecoder(b)
	version := d.Byte()
	switch {
	case !d.OK() || version == 0:
		return nil, fmt.Errorf("%w: it has no version", storage.ErrRecord)
	case version > scopeVersion:
		return nil, fmt.Errorf("a message with seeds: %w (its version is %d, this amble reads up to %d): "+
			"use a newer amble on this node", storage.ErrNewer, version, scopeVersion)
	}
	for n := d.UvarintMax(maxScopeSeeds); n > 0 && d.OK(); n-- {
		c := storage.SeedRow{URL: string(d.Long()), Value: []byte{}}
		if version > 1 {
			if size := d.UvarintMax(uint64(d.Len())); size == 0 {
				c.Value = nil
			} else {
				c.Value = append(c.Value, d.Bytes(int(size)-1)...)
			}
		}
		if !d.OK() {
			break
		}
		u, err := weburl.Parse(c.URL)
		if err != nil || u.String() != c.URL {
			return nil, fmt.Errorf("%w: a seed is no URL in its canonical form", storage.ErrRecord)
		}
		changes = append(changes, c)
	}
	if !d.OK() || d.Len() > 0 {
		return nil, fmt.Errorf("%w: seeds end too early or too late", storage.ErrRecord)
	}
	return changes, nil
}

// PublishSeeds makes changes of seeds known to all nodes. It returns the sequence of the last message, whose
// acknowledgement it has waited for. The same changes may be published again.
func (s *Streams) PublishSeeds(ctx context.Context, changes []storage.SeedRow) (sequence uint64, err error) {
	for len(changes) > 0 {
		n, size := 0, 0
		for n < min(len(changes), maxScopeSeeds) && size < maxScopeBytes {
			size += len(changes[n].URL) + len(changes[n].Value)
			n++
		}
		if sequence, err = s.publishScope(ctx, changes[:n]); err != nil {
			return 0, fmt.Errorf("publish seeds: %w", downError(err))
		}
		changes = changes[n:]
	}
	return sequence, nil
}

func (s *Streams) publishScope(ctx context.Context, changes []storage.SeedRow) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	ack, err := s.js.Publish(ctx, s.scopeSubject(), appendScope(nil, changes),
		jetstream.WithExpectStream(s.o.Prefix+"_log"))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

func (s *Streams) scopeSubject() string { return s.o.Prefix + ".scope" }

// TakeSeeds takes one message with changes of seeds. unreadable says that the message is damaged, or of a newer
// version, and has none.
type TakeSeeds func(sequence uint64, changes []storage.SeedRow, unreadable error)

// Seeds gives take the changes of seeds behind a sequence, until the context ends. The error is that of
// the context, or ErrLogDown.
func (s *Streams) Seeds(ctx context.Context, after uint64, take TakeSeeds) error {
	return s.follow(ctx, s.logArrivals, s.scopeSubject(), after,
		func(m *message) error { return takeScope(m, take) }, nil)
}

// AllSeeds gives take the changes of seeds that there are. The error is ErrLogDown.
func (s *Streams) AllSeeds(ctx context.Context, take TakeSeeds) error {
	last, err := s.last(ctx, s.scopeSubject())
	if err != nil || last == nil {
		return err
	}
	return s.read(ctx, s.logReads, s.scopeSubject(), span{0, last.Sequence, last.Sequence},
		func(m *message) error { return takeScope(m, take) })
}

// takeScope gives take a message. One that cannot be read, whatever its version says, costs its seeds: all nodes
// read it.
func takeScope(m *message, take TakeSeeds) error {
	changes, err := decodeScope(m.Data)
	take(m.Sequence, changes, err)
	return nil
}

// ReadScope gives take the changes of seeds behind a sequence that were published before this process has
// claimed the shard, however old what a server answers may be. The errors are ErrLost and
// ErrLogDown.
func (s *Shard) ReadScope(after uint64, take TakeSeeds) error {
	end, err := s.lastBefore(s.scopeSubject())
	if err == nil {
		err = s.read(s.ctx, s.logReads, s.scopeSubject(), span{after, end, end},
			func(m *message) error { return takeScope(m, take) })
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.scopeSubject(), err)
	}
	return nil
}
