//go:build !core

package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/storage"
)

// message is one message of a stream.
type message = jetstream.RawStreamMsg

// messageWait is for how long a reader waits for a message that has to come.
func (s *Streams) messageWait() time.Duration { return 2 * s.o.Timeout }

// The pauses between two attempts to read a message that a copy of a stream does not have yet.
const minRead, maxRead = 5 * time.Millisecond, 500 * time.Millisecond

// span is a part of a subject: the messages behind a sequence up to another one, which the stream has or has had,
// and those behind that which come with it, but none behind most.
type span struct{ after, upTo, most uint64 }

// read gives take the messages of a span. What is missing in it was purged. A copy that answers may be behind, so
// it is read again until it has the last one. The error is that of take, of the context, or ErrLogDown.
func (s *Streams) read(ctx context.Context, from *natsconn.Reads, subject string, what span,
	take func(*message) error) error {
	waiting, pause := time.Duration(0), minRead
	for after := what.after; after < what.upTo; {
		all, err := s.batch(ctx, from, subject, after+1)
		if err != nil && (ctx.Err() != nil || waiting >= s.messageWait()) {
			return downError(errors.Join(ctx.Err(), err))
		}
		for _, m := range all {
			if m.Sequence > what.most {
				return nil
			}
			if err := take(m); err != nil {
				return err
			}
			after = m.Sequence
		}
		if len(all) > 0 {
			waiting, pause = 0, minRead
			continue
		}
		if err == nil && waiting >= s.messageWait() {
			return fmt.Errorf("%w: message %d cannot be read; the last one was %d", storage.ErrLogDown,
				what.upTo, after)
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
		waiting, pause = waiting+pause, min(2*pause, maxRead)
	}
	return nil
}

// batch returns some messages of a subject from a sequence on.
func (s *Streams) batch(ctx context.Context, from *natsconn.Reads, subject string, first uint64,
) ([]*message, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	all, _, err := from.Batch(ctx, subject, first)
	return all, err
}

// sleep waits; false: the context has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lastBefore returns the sequence of the last message of a subject of the log before the claim of the shard; 0:
// there is none. Only a copy of the stream that has the claim is believed: it has all that is before it. The
// errors are ErrLost, if the claim is gone, and ErrLogDown.
func (s *Shard) lastBefore(subject string) (sequence uint64, err error) {
	for waiting, pause := time.Duration(0), minRead; ; waiting, pause = waiting+pause, min(2*pause, maxRead) {
		ctx, cancel := context.WithTimeout(s.ctx, s.o.Timeout)
		newest, err := s.logReads.Newest(ctx, s.epoch, subject, s.EpochSubject(s.n))
		cancel()
		hasClaim := false
		sequence = 0
		for _, m := range newest {
			if m.Subject == subject {
				sequence = m.Sequence
			} else {
				hasClaim = m.Sequence == s.epoch
			}
		}
		if err == nil && hasClaim {
			return sequence, nil
		}
		if err == nil {
			err = fmt.Errorf("the claim, message %d, is not there", s.epoch)
			if lost := s.check(); lost != nil {
				return 0, lost
			}
		}
		if s.ctx.Err() != nil || waiting >= s.messageWait() || !sleep(s.ctx, pause) {
			return 0, downError(errors.Join(s.ctx.Err(), err))
		}
	}
}

// recheckEvery is how often a follower asks the leader for messages that nobody has told it of. It depends on
// that only if a leader that was none any more has answered when it began.
const recheckEvery = 30 * time.Second

// follow gives take the messages of a subject behind a sequence as they come, and with each new mark of the stream
// its sequence to takeMark, unless that is nil, when all before it was taken. It ends with the context, or when
// one of these fails. The errors are theirs and ErrLogDown.
func (s *Streams) follow(ctx context.Context, a *arrivals, subject string, after uint64, take func(*message) error,
	takeMark func(sequence uint64) error) error {
	f, leave := a.join(subject)
	defer leave()
	f.take, f.takeMark, f.after = take, takeMark, after
	err := f.run(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// run reads what has come until the context ends or something fails.
func (f *follower) run(ctx context.Context) error {
	recheck := time.NewTicker(recheckEvery)
	defer recheck.Stop()
	for {
		due := f.a.due(f)
		if due.looks > f.looked {
			end, err := f.a.s.next(ctx, f.a.reads, f.subject, f.after+1)
			if err != nil {
				return err
			}
			if end == 0 {
				f.looked = due.looks
			}
			due.end = max(due.end, end)
		}
		if err := f.read(ctx, due.end); err != nil {
			return err
		}
		if due.looks > f.looked {
			continue
		}
		if due.mark > f.marked && f.takeMark != nil {
			if err := f.readMark(ctx, due.mark); err != nil {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.wake:
		case <-recheck.C:
			f.looked--
		}
	}
}

// read takes the messages up to a sequence at least.
func (f *follower) read(ctx context.Context, upTo uint64) error {
	return f.a.s.read(ctx, f.a.reads, f.subject, span{f.after, upTo, math.MaxUint64}, func(m *message) error {
		if err := f.take(m); err != nil {
			return err
		}
		f.after = m.Sequence
		return nil
	})
}

// readMark takes all that is before the newest mark, and then the mark. A copy of the stream that has this mark,
// or a later one, is believed: it has all that is before it.
func (f *follower) readMark(ctx context.Context, atLeast uint64) error {
	end, mark, err := f.a.s.marked(ctx, f.subject, atLeast)
	if err == nil {
		err = f.read(ctx, end)
	}
	if err == nil {
		err, f.marked = f.takeMark(mark), mark
	}
	return err
}

// marked returns the newest mark, which has a sequence or a later one, and the last message of a subject of the
// stream of URLs that is known with it, maybe a later one.
func (s *Streams) marked(ctx context.Context, subject string, atLeast uint64) (end, mark uint64, err error) {
	for waiting, pause := time.Duration(0), minRead; ; waiting, pause = waiting+pause, min(2*pause, maxRead) {
		limited, cancel := context.WithTimeout(ctx, s.o.Timeout)
		newest, err := s.inReads.Newest(limited, 0, subject, s.markSubject())
		cancel()
		for _, m := range newest {
			if m.Subject == subject {
				end = m.Sequence
			} else {
				mark = m.Sequence
			}
		}
		if err == nil && mark >= atLeast {
			return end, mark, nil
		}
		if err == nil {
			err = fmt.Errorf("mark %d is not there; the last one is %d", atLeast, mark)
		}
		if ctx.Err() != nil || waiting >= s.messageWait() || !sleep(ctx, pause) {
			return 0, 0, downError(errors.Join(ctx.Err(), err))
		}
	}
}

// next returns the sequence of the first message of a subject from a sequence on; 0: the leader has none.
func (s *Streams) next(ctx context.Context, from *natsconn.Reads, subject string, first uint64) (uint64, error) {
	if first == math.MaxUint64 {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	m, err := from.Next(ctx, subject, first)
	if err != nil || m == nil {
		return 0, downError(err)
	}
	return m.Sequence, nil
}
