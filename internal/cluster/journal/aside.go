//go:build !core

package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// The kinds of messages for one shard, as in their subjects.
const (
	kindLog = "log"
	kindIn  = "in"
)

// ErrNotAside says that a message cannot be set aside.
var ErrNotAside = errors.New("only a message with URLs for the shard that cannot be read can be set aside")

// SetAside takes a message with URLs for a shard out of its stream, because it cannot be read. keep gets its bytes
// first; unless it returns nil the message stays. The error is ErrNotAside for any other message.
func SetAside(ctx context.Context, js jetstream.JetStream, names natsconn.Names, shard int, sequence uint64,
	keep func(data []byte) error) error {
	subject := names.OfShard(kindIn, int32(shard))
	failed := func(err error) error { return fmt.Errorf("message %d of %s: %w", sequence, subject, err) }
	stream, err := js.Stream(ctx, names.Incoming())
	if err != nil {
		return failed(downError(err))
	}
	m, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Subject != subject {
		return failed(ErrNotAside)
	}
	if err != nil {
		return failed(downError(err))
	}
	if _, _, err := decodeDiscoveries(m.Data); err == nil {
		return failed(ErrNotAside)
	}
	if err := keep(m.Data); err != nil {
		return failed(err)
	}
	if err := stream.DeleteMsg(ctx, sequence); err != nil {
		return failed(downError(err))
	}
	return nil
}
