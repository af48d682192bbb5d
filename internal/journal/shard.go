package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/storage"
)

// Shard is the journal of one shard for one run of its engine, under one epoch. Append, Publish and
// Replay are for one goroutine, the committer of the engine; the others may be called concurrently.
type Shard struct {
	*Streams
	ctx   context.Context // of the run: when it ends, all calls return
	n     int
	epoch uint64 // the sequence of the claim, the fence

	out *outgoing // nil: nothing was appended yet
}

// outgoing is the record that is being appended.
type outgoing struct {
	record    []byte
	frames    []frame
	done      int // frames that the log has
	sequence  uint64
	unsettled bool // nobody knows whether the log has the next frame
}

// Shard returns the journal of a shard, given the sequence of the epoch with which this process has
// claimed it. A claim serves one run of the engine only. The context ends all that the journal waits
// for.
func (s *Streams) Shard(ctx context.Context, n int, epoch uint64) *Shard {
	return &Shard{Streams: s, ctx: ctx, n: n, epoch: epoch}
}

// Owns reports whether a host belongs to the shard.
func (s *Shard) Owns(host string) bool { return int(cluster.ShardOf(host, s.o.Shards)) == s.n }

// tries is how often Append tries to get one message into the log, before its caller has to.
const tries = 3

// Append appends a record, as [storage.Log] says. It has one message in flight at a time.
func (s *Shard) Append(number uint64, record []byte) (uint64, error) {
	switch {
	case s.out == nil || s.out.done == len(s.out.frames):
		s.out = &outgoing{record: record, frames: newFrames(number, record, s.part)}
	case s.out.frames[0].number != number || !bytes.Equal(s.out.record, record):
		return 0, fmt.Errorf("shard %d: record %d while record %d is being appended", s.n, number, s.out.frames[0].number)
	}
	for s.out.done < len(s.out.frames) {
		sequence, err := s.appendFrame(&s.out.frames[s.out.done])
		if err != nil {
			return 0, fmt.Errorf("append to %s: %w", s.subject("log", s.n), err)
		}
		s.out.done, s.out.sequence = s.out.done+1, sequence
	}
	return s.out.sequence, nil
}

// appendFrame appends one message, and settles what became of it.
func (s *Shard) appendFrame(f *frame) (sequence uint64, err error) {
	for try := range tries {
		if s.out.unsettled {
			sequence, err = s.settle(f)
			if sequence > 0 || err != nil {
				return sequence, err
			}
		}
		if try > 0 && !s.pause(try) {
			return 0, downError(s.ctx.Err())
		}
		if sequence, err = s.publish(f); err == nil {
			s.out.unsettled = false
			return sequence, nil
		}
		s.out.unsettled = true
	}
	return 0, downError(err)
}

// pause waits before the next try; false: the run ends.
func (s *Shard) pause(try int) bool {
	t := time.NewTimer(time.Duration(try*try) * 20 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// publish sends one message and waits for its answer. Any error may mean anything.
func (s *Shard) publish(f *frame) (uint64, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Timeout)
	defer cancel()
	m := &nats.Msg{Subject: s.subject("log", s.n), Data: f.append(nil)}
	ack, err := s.js.PublishMsg(ctx, m,
		jetstream.WithMsgID(fmt.Sprintf("%d.%d.%d.%d.%x", s.n, s.epoch, f.number, f.part, f.sum)),
		jetstream.WithExpectStream(s.o.Prefix+"_log"),
		jetstream.WithExpectLastSequenceForSubject(s.epoch, s.EpochSubject(s.n)), jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// settle finds out what became of a message without an answer, or with a refusal, whatever its code:
// it returns the sequence if the log has it, and ErrLost if the shard has another owner. 0: neither,
// so the message has to be sent again. That is safe even if what was read is old, or the message is
// still on its way: one that comes twice is known by its id, or counts once when the log is read.
func (s *Shard) settle(f *frame) (uint64, error) {
	m, err := s.last(s.ctx, s.subject("log", s.n))
	if err != nil {
		return 0, err
	}
	if m != nil {
		if got, err := decodeFrame(m.Data); err == nil && got.sameRecord(f) && got.part == f.part {
			s.out.unsettled = false
			return m.Sequence, nil
		}
	}
	return 0, s.check()
}

// check returns ErrLost if the shard has a later epoch.
func (s *Shard) check() error {
	m, err := s.last(s.ctx, s.EpochSubject(s.n))
	if err != nil {
		return err
	}
	if m != nil && m.Sequence > s.epoch {
		return fmt.Errorf("%w (epoch %d, ours is %d)", storage.ErrLost, m.Sequence, s.epoch)
	}
	return nil
}

// Replay gives the records behind a position to apply, in their order. It ends at the claim of this
// process, behind which nobody else can append: so no record is missed, however old what a server
// answers may be. The errors are those of apply, ErrLost, ErrNewer, ErrRecord and ErrLogDown.
func (s *Shard) Replay(from storage.LogPosition, apply func(sequence uint64, record []byte) error) error {
	start := max(1, min(from.Sequence+1, s.epoch))
	reader, err := s.newReader(s.ctx, s.log, start, s.subject("log", s.n), s.EpochSubject(s.n))
	if err != nil {
		return fmt.Errorf("replay %s: %w", s.subject("log", s.n), err)
	}
	defer reader.close()
	if err := s.replay(reader, from.Number, apply); err != nil {
		return fmt.Errorf("replay %s: %w", s.subject("log", s.n), err)
	}
	return nil
}

func (s *Shard) replay(reader *reader, number uint64, apply func(uint64, []byte) error) error {
	var parts assembler
	for {
		m, err := reader.next(s.ctx, s.messageWait())
		if err != nil {
			return err
		}
		if m.subject == s.EpochSubject(s.n) {
			switch {
			case m.sequence == s.epoch:
				return nil
			case m.sequence > s.epoch:
				return fmt.Errorf("%w (epoch %d, ours is %d)", storage.ErrLost, m.sequence, s.epoch)
			}
			continue
		}
		f, err := decodeFrame(m.data)
		if err != nil {
			return fmt.Errorf("message %d: %w", m.sequence, err)
		}
		if f.number <= number {
			continue
		}
		if f.number > number+1 {
			return fmt.Errorf("message %d: %w (record %d is there, %d is missing)",
				m.sequence, storage.ErrGap, f.number, number+1)
		}
		record, err := parts.add(&f)
		if err != nil {
			return fmt.Errorf("message %d: %w", m.sequence, err)
		}
		if record == nil {
			continue
		}
		if err := apply(m.sequence, record); err != nil {
			return err
		}
		number = f.number
	}
}

// messageWait is for how long a reader waits for a message that has to come.
func (s *Streams) messageWait() time.Duration { return 2 * s.o.Timeout }

// message is one message of a stream.
type message struct {
	subject  string
	sequence uint64
	data     []byte
}

// reader reads messages of a stream in their order.
type reader struct{ messages jetstream.MessagesContext }

// newReader begins to read at a sequence.
func (s *Streams) newReader(
	ctx context.Context, of jetstream.Stream, start uint64, subjects ...string,
) (*reader, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	c, err := of.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: subjects, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(1, start),
		MaxResetAttempts: 1, // otherwise it makes them until the servers answer, and does not heed a context
	})
	if err != nil {
		return nil, downError(err)
	}
	messages, err := c.Messages(jetstream.PullMaxMessages(64))
	if err != nil {
		return nil, downError(err)
	}
	return &reader{messages}, nil
}

// next returns the next message. It waits for it until the context ends, and no longer than wait if
// that is not 0.
func (r *reader) next(ctx context.Context, wait time.Duration) (message, error) {
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	m, err := r.messages.Next(jetstream.NextContext(ctx))
	if err != nil {
		return message{}, downError(err)
	}
	meta, err := m.Metadata()
	if err != nil {
		return message{}, downError(err)
	}
	return message{m.Subject(), meta.Sequence.Stream, m.Data()}, nil
}

func (r *reader) close() { r.messages.Stop() }

// follow gives take the messages of a subject behind a sequence as they come, until the context ends or
// take fails. The errors are theirs and ErrLogDown.
//
// After servers were away, a reader may wait for ever for messages that the stream has: the server goes
// on to say that it has nothing to deliver. So after a silence the last message is compared.
func (s *Streams) follow(
	ctx context.Context, of jetstream.Stream, subject string, after uint64, take func(*message) error,
) error {
	reader, err := s.newReader(ctx, of, after+1, subject)
	if err != nil {
		return fmt.Errorf("read %s: %w", subject, err)
	}
	defer reader.close()
	for {
		m, err := reader.next(ctx, s.messageWait())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, context.DeadlineExceeded) {
			if err = s.checkDelivered(ctx, of, subject, after); err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", subject, err)
		}
		if err := take(&m); err != nil {
			return err
		}
		after = m.sequence
	}
}

// checkDelivered returns an error if a subject has messages behind the last one that was delivered.
func (s *Streams) checkDelivered(ctx context.Context, of jetstream.Stream, subject string, delivered uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	m, err := of.GetLastMsgForSubject(ctx, subject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	case err != nil:
		return downError(err)
	case m.Sequence > delivered:
		return fmt.Errorf("%w: message %d is in the stream and was not delivered; the last one was %d",
			storage.ErrLogDown, m.Sequence, delivered)
	}
	return nil
}
