package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
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
	raw, err := r.reads().Last(ctx, subject)
	if err != nil || raw == nil {
		return m, false, err
	}
	return newMessage(raw), true, nil
}

func (r *registers) reads() *natsconn.Reads { return natsconn.NewReads(r.nc, r.names.Stream()) }

// newMessage returns a message of a register as the stream has it.
func newMessage(m *jetstream.RawStreamMsg) message {
	return message{subject: m.Subject, seq: m.Sequence, at: m.Time, data: m.Data, notes: notesOf(m.Header)}
}

// newestAtOnce is how many registers are read at once.
const newestAtOnce = 128

// newest gives take the newest message of each of some registers.
func (r *registers) newest(ctx context.Context, subjects []string, take func(message)) error {
	for some := range slices.Chunk(subjects, newestAtOnce) {
		all, err := r.reads().Newest(ctx, 0, some...)
		if err != nil {
			return err
		}
		for _, m := range all {
			take(newMessage(m))
		}
	}
	return nil
}

// all gives take the messages of the registers of a kind that there are, in their order.
func (r *registers) all(ctx context.Context, kind string, take func(message)) error {
	for from, more := uint64(1), true; more; {
		var some []*jetstream.RawStreamMsg
		var err error
		if some, more, err = r.reads().Batch(ctx, r.names.Subject(kind, "*"), from); err != nil {
			return err
		}
		for _, m := range some {
			take(newMessage(m))
			from = m.Sequence + 1
		}
	}
	return nil
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

// follow delivers the last message of each register of some kinds, and then all that are written, until something
// fails, the connection is lost or the context ends. synced is called when the messages that there were have been
// delivered.
func (r *registers) follow(ctx context.Context, deliver func(message), synced func(), kinds ...string) error {
	f := natsconn.Following{Policy: jetstream.DeliverLastPerSubjectPolicy}
	for _, kind := range kinds {
		f.Subjects = append(f.Subjects, r.names.Subject(kind, "*"))
	}
	return natsconn.Follow(ctx, r.nc, r.stream, f, func(m jetstream.RawStreamMsg) { deliver(newMessage(&m)) }, synced)
}
