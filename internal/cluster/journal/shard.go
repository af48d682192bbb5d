//go:build !core

package journal

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal/records"
	"github.com/amble-crawler/amble/storage"
)

// Shard is the journal of one shard for one run of its engine, under one epoch. Append, Publish and
// Replay are for one goroutine, the committer of the engine; the others may be called concurrently.
type Shard struct {
	*Streams
	records.Codec
	ctx   context.Context // of the run: when it ends, all calls return
	n     int
	epoch uint64 // the sequence of the claim, the fence

	out      *outgoing // nil: nothing was appended yet
	appended uint64    // the sequence of the last record that was appended; 0: none was
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
// claimed it. A claim serves one run of the engine, or several with the same
// journal. The context ends all that the journal waits
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
		return 0,
			fmt.Errorf("shard %d: record %d while record %d is being appended", s.n, number, s.out.frames[0].number)
	}
	for s.out.done < len(s.out.frames) {
		sequence, err := s.appendFrame(&s.out.frames[s.out.done])
		if err != nil {
			return 0, fmt.Errorf("append to %s: %w", s.subject("log", s.n), err)
		}
		s.out.done, s.out.sequence = s.out.done+1, sequence
	}
	s.appended = s.out.sequence
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
// answers may be. The log has the record at the position too, unless a snapshot made it superfluous. The
// errors are those of apply, ErrLost, ErrAhead, ErrNewer, ErrRecord and ErrLogDown.
func (s *Shard) Replay(from storage.LogPosition, apply func(sequence uint64, record []byte) error) error {
	err := s.replayFrom(from, apply)
	if err != nil {
		return fmt.Errorf("replay %s: %w", s.subject("log", s.n), err)
	}
	return nil
}

func (s *Shard) replayFrom(from storage.LogPosition, apply func(sequence uint64, record []byte) error) error {
	if s.appended > 0 && from.Sequence == s.appended {
		return nil // the database was opened again under this claim
	}
	if from.Sequence >= max(s.epoch, s.appended) { // the log has never had more
		return fmt.Errorf("%w (up to message %d, the log ended before message %d); %s",
			storage.ErrAhead, from.Sequence, s.epoch, aheadAdvice)
	}
	return s.replay(from, apply)
}

// aheadAdvice is what to do when a log has lost records.
const aheadAdvice = "restore the NATS servers from a backup, or begin again with what the nodes have: " +
	"docs/CLUSTER.md, section \"A log that is lost\""

// explain returns nil if the log lacks the record at a position because a snapshot has it, else ErrAhead. If the log
// is empty behind the position and the snapshot has later records, the error is ErrGap.
func (s *Shard) explain(from storage.LogPosition, empty bool) error {
	all, err := s.list(s.ctx)
	if err != nil {
		return err
	}
	newest, known := uint64(0), from.Number == 0
	for i := range all {
		if all[i].log == s.Identity() && all[i].At.Number >= from.Number {
			newest, known = all[i].At.Number, true
		}
	}
	switch {
	case !known:
		return fmt.Errorf("%w (record %d, message %d, is not there); %s",
			storage.ErrAhead, from.Number, from.Sequence, aheadAdvice)
	case empty && newest > from.Number:
		return fmt.Errorf("%w (only a snapshot has records %d to %d)", storage.ErrGap, from.Number+1, newest)
	}
	return nil
}

// replay reads the log from a position up to the claim.
func (s *Shard) replay(from storage.LogPosition, apply func(uint64, []byte) error) error {
	subject := s.subject("log", s.n)
	end, err := s.lastBefore(subject)
	if err != nil {
		return err
	}
	end = max(end, s.appended) // nobody else appends behind the claim before he has one of his own
	r := replaying{s: s, from: from, number: from.Number, apply: apply}
	first := max(1, from.Sequence) - 1 // the record at the position too
	err = s.read(s.ctx, s.logReads, subject, span{first, end, end}, r.take)
	if err == nil && !r.known {
		err = s.explain(from, true)
	}
	return err
}

// replaying is a replay under way.
type replaying struct {
	s      *Shard
	from   storage.LogPosition
	parts  assembler
	number uint64 // of the last record that was applied
	known  bool   // why the log begins where it does
	apply  func(uint64, []byte) error
}

// take takes the next message of the log.
func (r *replaying) take(m *message) error {
	f, err := decodeFrame(m.Data)
	if err != nil && m.Header.Get(jetstream.ExpectedLastSubjSeqHeader) == "" {
		return nil // no node has appended it, since nodes fence their records
	}
	if err != nil {
		return &storage.MessageError{Kind: kindLog, Sequence: m.Sequence, Err: err}
	}
	from := r.from
	if r.known = r.known || from.Number == 0 || m.Sequence == from.Sequence && f.number == from.Number; !r.known {
		if err := r.s.explain(from, false); err != nil {
			return err
		}
		r.known = true
	}
	if f.number <= r.number {
		return nil
	}
	if f.number > r.number+1 {
		return fmt.Errorf("message %d: %w (record %d is there, %d is missing)",
			m.Sequence, storage.ErrGap, f.number, r.number+1)
	}
	record, err := r.parts.add(&f)
	if err != nil {
		return &storage.MessageError{Kind: kindLog, Sequence: m.Sequence, Err: err}
	}
	if record == nil {
		return nil
	}
	if err := r.apply(m.Sequence, record); err != nil {
		return err
	}
	r.number = f.number
	return nil
}
