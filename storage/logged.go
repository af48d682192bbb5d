//go:build !core

package storage

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Log is what a store is a view of: every batch is in the log before it is in the store, so that
// the store can be made again of the log. [Store.CommitTo] writes both.
type Log interface {
	Codec
	// Append makes a record durable and returns its sequence, which is higher than those of the
	// records before it. number counts the records from 1. After an error nobody knows whether the
	// log has the record. The caller appends the same record again, or nothing any more. The error is
	// ErrLost or ErrLogDown, or lasts.
	Append(number uint64, record []byte) (sequence uint64, err error)
}

// Change is a commit as a value: a batch, and all that decides what it does besides the database. Whoever applies
// the changes of a database in their order has the same rows.
type Change struct {
	Number  uint64   // from 1, without gaps
	Writer  WriterID // the data directory that made it
	Key     []byte   // the secret of the fingerprints, in the first change only; nil: none
	Limits  Limits
	Notices []Notice
	Batch   Batch             // without marks of the data directory and without InsertResults
	Local   map[string][]byte // marks that count in the data directory of the writer only
}

// Codec is the form that changes have in a log.
type Codec interface {
	// Encode returns a change as the log has it. After an error the log cannot have it.
	Encode(*Change) ([]byte, error)
	// Decode is the inverse of Encode, but for fingerprints, which [Store.Replay] sets. The change may refer to the
	// bytes, which may be anything. The error is ErrNewer or ErrRecord.
	Decode([]byte) (*Change, error)
}

// check returns an error if a change that was decoded cannot be one of a store.
func (c *Change) check() error {
	ok := (c.Number == 1) == (len(c.Key) == keySize) && (len(c.Key) == keySize || c.Key == nil)
	if !ok {
		return fmt.Errorf("%w: record %d and the key of the store do not belong together", ErrRecord, c.Number)
	}
	for name := range c.Batch.Marks {
		ok = ok && !isLocal(name)
	}
	for name := range c.Local {
		ok = ok && isLocal(name)
	}
	if !ok {
		return fmt.Errorf("%w: it mixes up the marks of its data directory with others", ErrRecord)
	}
	return nil
}

// divideMarks returns the marks of a batch that every view has, and those of its data directory.
func divideMarks(all map[string][]byte) (shared, local map[string][]byte) {
	shared, local = maps.Clone(all), maps.Clone(all)
	maps.DeleteFunc(shared, func(name string, _ []byte) bool { return isLocal(name) })
	maps.DeleteFunc(local, func(name string, _ []byte) bool { return !isLocal(name) })
	return shared, local
}

var (
	// ErrRecord says that a record of the log cannot be read.
	ErrRecord = fmt.Errorf("%w: a record of the log cannot be read", ErrCorrupt)
	// ErrGap says that records are missing between the store and the log.
	ErrGap = errors.New("records of the log are missing: restore the database from a snapshot")
	// ErrAhead says that the log does not have what the store has: it was lost and made again, or has lost
	// its end.
	ErrAhead = errors.New("the log of the cluster has lost records that this node still has")
)

// MessageError is an error of one message for a shard, which is the same wherever it is read.
type MessageError struct {
	Kind     string // of the message: "log" for a record, "in" for URLs of other shards
	Sequence uint64
	Err      error
}

// Error is part of error.
func (e *MessageError) Error() string {
	return fmt.Sprintf("message %d (%s): %v", e.Sequence, e.Kind, e.Err)
}

// Unwrap returns the error.
func (e *MessageError) Unwrap() error { return e.Err }

// LogPosition returns how far the store has followed its log. Any goroutine may call it.
func (s *rows) LogPosition() (p LogPosition, err error) {
	err = s.db.View(func(tx *txn) error {
		p, err = getPosition(tx.Bucket(bucketMark))
		return err
	})
	return p, err
}

// CommitTo makes a batch durable like [Store.Commit], in the log first. The log has the batch and
// all that decides what it does besides the database, so [Store.Replay] does the same in every
// other view. A batch that cannot be applied does not get into the log. Marks of the files of this
// data directory are in the log for this data directory alone; a batch that has nothing else is
// committed without the log. If the error is ErrPending, the batch is in the log or may be:
// CommitTo has to be called again with the same batch, unchanged, and nothing else can be committed
// until it has succeeded. The output that belongs to the batch must be kept.
func (s *Store) CommitTo(log Log, b *Batch) (Result, error) {
	if s.pending == nil {
		if b.isLocal() {
			return s.commit(b, effects{limits: s.limits, onListed: s.notice})
		}
		if err := s.ensureView(); err != nil {
			return Result{}, fmt.Errorf("commit to %s: %w", s.path, err)
		}
		s.pending = &pending{batch: b, number: s.position.Number + 1}
	}
	p := s.pending
	if p.batch != b {
		return Result{}, fmt.Errorf("commit to %s: %w", s.path, ErrPending)
	}
	e := effects{limits: s.limits, onListed: s.notice}
	if p.record != nil {
		e = effects{limits: s.limits, decided: p.notices}
	}
	e.finish = func(w *writer) error { return s.appendPending(log, p, w) }
	result, err := s.commit(b, e)
	switch {
	case err == nil:
		s.position, s.pending = LogPosition{p.number, p.sequence}, nil
	case p.record == nil:
		s.pending = nil
	default:
		err = fmt.Errorf("%w: %w", ErrPending, err)
	}
	return result, err
}

// appendPending appends a batch that has been applied to the log, and sets the marks of the log.
func (s *Store) appendPending(log Log, p *pending, w *writer) error {
	var err error
	if p.record == nil {
		if p.number == 1 && !s.began {
			return fmt.Errorf("%w: it has rows that no log has", ErrLogged)
		}
		c := Change{
			Number: p.number, Writer: s.view, Limits: s.limits, Notices: slices.Clone(w.notices), Batch: *p.batch,
		}
		c.Batch.InsertResults = nil
		c.Batch.Marks, c.Local = divideMarks(p.batch.Marks)
		if p.number == 1 {
			c.Key = s.key[:]
		}
		if p.record, err = log.Encode(&c); err != nil {
			p.record = nil
			return err
		}
		p.notices = c.Notices
	}
	if p.sequence == 0 {
		if p.sequence, err = log.Append(p.number, p.record); err != nil {
			p.sequence = 0
			return err
		}
	}
	return putPosition(w.tx.Bucket(bucketMark), LogPosition{p.number, p.sequence})
}

// ensureView sets the id of this data directory if there is none. It is on disk before any log has it:
// after a kill in the first commit the record in the log has to be that of this directory.
func (s *Store) ensureView() error {
	if s.view != (WriterID{}) {
		return nil
	}
	var id WriterID
	err := s.db.Update(func(tx *txn) error {
		marks := tx.Bucket(bucketMark)
		if stored := marks.Get([]byte(markView)); len(stored) == len(id) {
			copy(id[:], stored)
			return nil
		}
		if _, err := rand.Read(id[:]); err != nil {
			return err
		}
		return marks.Put([]byte(markView), id[:])
	})
	if err != nil {
		return fmt.Errorf("mark %s: %w", markView, err)
	}
	s.view = id
	return nil
}

// LogRecord is a record of a log.
type LogRecord struct {
	Sequence uint64
	Data     []byte
}

// Replay applies records of the log to the store, in their order and in one transaction, and skips
// those that the store has already. The errors are ErrGap, ErrNewer, ErrRecord and those of Commit;
// after one the store is as before. Only the committer may call Replay, and no other goroutine may
// use the store meanwhile: the first record of a log also sets the secret of the fingerprints.
func (s *Store) Replay(codec Codec, all ...LogRecord) error {
	position := s.position
	var changes []*Change
	var sequences []uint64
	for _, encoded := range all {
		c, err := codec.Decode(encoded.Data)
		if err != nil {
			return err
		}
		if c.Number <= position.Number {
			continue
		}
		if c.Number > position.Number+1 {
			return fmt.Errorf("%w (the database ends at %d, the log goes on at %d)", ErrGap, position.Number, c.Number)
		}
		if err := c.check(); err != nil {
			return err
		}
		if c.Number == 1 && !s.began {
			return fmt.Errorf("%w: it has rows that no log has", ErrLogged)
		}
		position = LogPosition{c.Number, encoded.Sequence}
		changes, sequences = append(changes, c), append(sequences, encoded.Sequence)
	}
	if len(changes) == 0 {
		return nil
	}
	key := s.key
	copy(s.key[:], changes[0].Key)
	if err := s.replay(changes, sequences); err != nil {
		s.key = key
		return fmt.Errorf("records %d to %d of the log: %w", changes[0].Number, position.Number, err)
	}
	s.position = position
	return nil
}

func (s *Store) replay(changes []*Change, sequences []uint64) error {
	batches, all := make([]*Batch, len(changes)), make([]effects, len(changes))
	for i, c := range changes {
		for n := range c.Batch.Found {
			f := &c.Batch.Found[n]
			f.Fingerprint = s.Fingerprint(f.URL)
			if f.Stripped != "" {
				f.Fingerprint = fingerprint(&s.rows, f.URL.Scheme() == "https", f.URL.Port(), f.Stripped)
			}
		}
		batches[i] = &c.Batch
		all[i] = effects{limits: c.Limits, decided: c.Notices, finish: func(w *writer) error {
			return w.replayed(c, sequences[i])
		}}
	}
	_, err := s.commitAll(batches, all)
	return err
}

// replayed sets what a change has besides its batch.
func (w *writer) replayed(c *Change, sequence uint64) error {
	if len(w.effects.decided) > 0 {
		return fmt.Errorf("%w: it has results for URLs that it does not list", ErrRecord)
	}
	if c.Key != nil {
		if err := w.tx.Bucket(bucketMeta).Put(metaKey, c.Key); err != nil {
			return err
		}
	}
	marks := w.tx.Bucket(bucketMark)
	if view := marks.Get([]byte(markView)); bytes.Equal(view, c.Writer[:]) {
		if err := putMarks(marks, c.Local); err != nil {
			return err
		}
	}
	return putPosition(marks, LogPosition{c.Number, sequence})
}

func putPosition(marks *bucket, p LogPosition) error { return marks.Put([]byte(markLog), p.encode()) }

// encode returns the value of the mark of the log.
func (p LogPosition) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, p.Number), p.Sequence)
}
