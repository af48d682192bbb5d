package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/natsconn"
)

// registers are the registers of a cluster, which are subjects of a stream. They may be used
// concurrently.
type registers struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	names  natsconn.Names
}

// message is a message of a register.
type message struct {
	subject string
	seq     uint64
	at      time.Time // when the server took it
	data    []byte
	notes   []string
}

// result is what became of a write.
type result uint8

const (
	unknown result = iota // no answer, or one that says nothing
	written
	refused // the register has another sequence
)

// wrongLastSequence is the error of a write to a register that has another sequence. JetStream has
// another error (10164) for a write that comes while another one is under way; it proves nothing.
const wrongLastSequence = 10071

// write writes a message to a register, on condition of its last sequence. If it replaces the ones
// before, these are removed.
func (r *registers) write(ctx context.Context, subject string, data []byte, expected uint64,
	replaces bool, notes ...string) (seq uint64, _ result, err error) {
	m := nats.NewMsg(subject)
	m.Data = data
	for _, note := range notes {
		m.Header.Add(noteHeader, note)
	}
	if replaces {
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	ack, err := r.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(expected),
		jetstream.WithExpectStream(r.names.Stream()))
	var refusal *jetstream.APIError
	switch {
	case err == nil && ack.Stream == r.names.Stream() && ack.Sequence > expected:
		return ack.Sequence, written, nil
	case err == nil:
		return 0, unknown, fmt.Errorf("unexpected answer: stream %q, sequence %d", ack.Stream, ack.Sequence)
	case errors.As(err, &refusal) && refusal.ErrorCode == wrongLastSequence:
		return 0, refused, err
	}
	return 0, unknown, err
}

// read returns the last message of a register. ok is false if there is none, as far as the server
// knows, or no answer.
func (r *registers) read(ctx context.Context, subject string) (m message, ok bool, err error) {
	raw, err := r.stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	return message{subject: raw.Subject, seq: raw.Sequence, at: raw.Time, data: raw.Data,
		notes: notesOf(raw.Header)}, true, nil
}

// ended returns the error of a step that a context has ended, of what went wrong until then. It says the same once.
func ended(ctx context.Context, errs ...error) error {
	var all error
	for _, err := range append(errs, ctx.Err()) {
		isEnd := func(err error) bool { return ctx.Err() != nil && errors.Is(err, ctx.Err()) }
		switch {
		case err == nil || errors.Is(all, err) || isEnd(all) && isEnd(err):
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return natsconn.Down(all)
}

// followHeartbeat is how often a server that has nothing to deliver says so. Without two of them what follows
// ends.
const followHeartbeat = 5 * time.Second

// followKept is for how long a server keeps a consumer that nobody reads from.
const followKept = time.Minute

// The failures that a consumer does not report.
var (
	errConnection = errors.New("the connection was lost")
	errSkipped    = errors.New("messages were lost")
)

// follow delivers the last message of each register of some kinds, or all that there are, and then all that
// are written, until something fails, the connection is lost or the context ends. synced is called when the
// messages that there were have been delivered.
//
// The ordered consumer of the library is of no use here: while it looks for its servers it heeds no context.
func (r *registers) follow(ctx context.Context, policy jetstream.DeliverPolicy, deliver func(message), synced func(),
	kinds ...string) error {
	var subjects []string
	for _, kind := range kinds {
		subjects = append(subjects, r.names.Subject(kind, "*"))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer r.watchConnection(ctx, cancel)()
	c, err := r.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubjects: subjects, DeliverPolicy: policy, AckPolicy: jetstream.AckNonePolicy,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: followKept,
	})
	if err != nil {
		return err
	}
	it, err := c.Messages(jetstream.PullHeartbeat(followHeartbeat))
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
		deliver(message{subject: m.Subject(), seq: meta.Sequence.Stream, at: meta.Timestamp,
			data: m.Data(), notes: notesOf(m.Headers())})
		if meta.NumPending == 0 {
			synced()
		}
	}
}

// watchConnection calls cancel when the connection is lost, or the function that it returns is called.
func (r *registers) watchConnection(ctx context.Context, cancel context.CancelCauseFunc) (end func()) {
	lost := r.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
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
		r.nc.RemoveStatusListener(lost)
	}
}
