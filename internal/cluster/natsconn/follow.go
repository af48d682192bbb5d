package natsconn

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// followHeartbeat is how often a server that has nothing to deliver says so. Without two of them what follows
// ends: so a request for messages that was lost is noticed.
const followHeartbeat = 2 * time.Second

// followExpiry is for how long a request for messages lasts.
const followExpiry = 20 * time.Second

// followKept is for how long a server keeps a consumer that nobody reads from and nobody could delete.
const followKept = 30 * time.Second

// deleteTimeout bounds the wait for the end of a consumer.
const deleteTimeout = 2 * time.Second

// The failures that a consumer does not report.
var (
	errConnection = errors.New("the connection was lost")
	errSkipped    = errors.New("messages were lost")
)

// Following is what [Follow] follows.
type Following struct {
	Subjects []string
	Policy   jetstream.DeliverPolicy
	Heads    bool // deliver the messages without their data
}

// Follow delivers the messages of some subjects of a stream: those that the policy says, and then all that are
// written, until something fails, the connection is lost or the context ends. synced is called when the messages
// that there were have been delivered. Its consumer ends with it.
//
// The ordered consumer of the library is of no use here: while it looks for its servers it heeds no context, and
// what it leaves on the servers stays for minutes.
func Follow(ctx context.Context, nc *nats.Conn, stream jetstream.Stream, f Following,
	deliver func(jetstream.RawStreamMsg), synced func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer watchConnection(ctx, nc, cancel)()
	c, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubjects: f.Subjects, DeliverPolicy: f.Policy, AckPolicy: jetstream.AckNonePolicy, HeadersOnly: f.Heads,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: followKept,
	})
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer func() {
		ending, end := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
		defer end()
		if nc.IsConnected() {
			_ = stream.DeleteConsumer(ending, c.CachedInfo().Name) // else the servers do after followKept
		}
	}()
	it, err := c.Messages(jetstream.PullHeartbeat(followHeartbeat), jetstream.PullExpiry(followExpiry))
	if err != nil {
		return err
	}
	defer it.Stop()
	if c.CachedInfo().NumPending == 0 {
		synced()
	}
	for n := uint64(1); ; n++ {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Consumer != n {
			return errSkipped
		}
		deliver(jetstream.RawStreamMsg{
			Subject: m.Subject(), Sequence: meta.Sequence.Stream, Time: meta.Timestamp, Header: m.Headers(),
			Data: m.Data(),
		})
		if meta.NumPending == 0 {
			synced()
		}
	}
}

// watchConnection calls cancel when the connection is lost, or the function that it returns is called.
func watchConnection(ctx context.Context, nc *nats.Conn, cancel context.CancelCauseFunc) (end func()) {
	lost := nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-lost:
			cancel(errConnection)
		case <-ctx.Done():
		}
	})
	return func() {
		cancel(nil)
		watching.Wait()
		nc.RemoveStatusListener(lost)
	}
}
