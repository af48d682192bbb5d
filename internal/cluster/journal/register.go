//go:build !core

package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// Register is the newest message of one subject of the log. A write replaces it, on the condition that it is
// the one that the writer knows. Its methods may be called concurrently.
type Register struct {
	s       *Streams
	subject string
}

// Register returns the register with a name, which the stream of the logs has.
func (s *Streams) Register(name string) *Register { return &Register{s, s.o.Prefix + "." + name} }

// OpenRegister returns the register of a cluster for those who are no node of it.
func OpenRegister(
	nc *nats.Conn, js jetstream.JetStream, names natsconn.Names, name string, timeout time.Duration,
) *Register {
	s := &Streams{o: Options{Prefix: names.Base(), Timeout: timeout}, js: js}
	s.logReads = natsconn.NewReads(nc, names.Stream())
	return s.Register(name)
}

// Read returns the value and its sequence; 0: there is none. It may be an old one: only a write proves that it
// is not. The error is ErrLogDown.
func (r *Register) Read(ctx context.Context) (data []byte, sequence uint64, err error) {
	m, err := r.s.last(ctx, r.subject)
	if err != nil || m == nil {
		return nil, 0, err
	}
	return m.Data, m.Sequence, nil
}

// wrongLastSequence is the error of a write to a register that has another sequence.
const wrongLastSequence = 10071

// ErrRefused means that a register has another sequence than the writer knows.
var ErrRefused = errors.New("the register was written by another node")

// Write replaces the value that has a sequence, and returns the sequence of the new one. The error is
// ErrRefused, or ErrLogDown: then nobody knows whether it was written.
func (r *Register) Write(ctx context.Context, data []byte, expected uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, r.s.o.Timeout)
	defer cancel()
	m := &nats.Msg{Subject: r.subject, Data: data, Header: nats.Header{
		jetstream.MsgRollup: {jetstream.MsgRollupSubject},
	}}
	ack, err := r.s.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(expected),
		jetstream.WithExpectStream(r.s.o.Prefix+"_log"), jetstream.WithRetryAttempts(0))
	var refusal *jetstream.APIError
	switch {
	case errors.As(err, &refusal) && refusal.ErrorCode == wrongLastSequence:
		return 0, fmt.Errorf("write %s: %w", r.subject, ErrRefused)
	case err != nil:
		return 0, fmt.Errorf("write %s: %w", r.subject, downError(err))
	}
	return ack.Sequence, nil
}

// Values gives take the value, and then those that replace it, until the context ends. The error is that of
// the context, or ErrLogDown.
func (r *Register) Values(ctx context.Context, take func(data []byte, sequence uint64)) error {
	return r.s.follow(ctx, r.s.logArrivals, r.subject, 0, func(m *message) error {
		take(m.Data, m.Sequence)
		return nil
	}, nil)
}
