package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/records/wire"
)

// The errors of a store with a log.
var (
	// ErrPending says that a batch is in the log, or may be, and not in the store. Only CommitTo with
	// the same batch goes on. If the process ends before that, the next one replays the log.
	ErrPending = errors.New("the batch may be in the log, and is not in the database yet")
	// ErrLogged says that a change would not be in the log.
	ErrLogged = errors.New("the database is a view of the log of a cluster, and cannot be changed without it")
	// ErrLost says that the log takes no more records from this process: another owns it.
	ErrLost = errors.New("the log of the shard belongs to another node now")
	// ErrLogDown says that the log does not answer, or takes nothing at the moment. It may pass.
	ErrLogDown = errors.New("the log cannot be reached or written at the moment")
)

// LogPosition is how far a store has followed its log. The zero value is the start of the log.
type LogPosition struct {
	Number   uint64 // of the last record in the store
	Sequence uint64 // of that record
}

// Marks of a store with a log. No batch may set them.
const (
	markLog  = "log"  // the LogPosition
	markView = "view" // the WriterID of this data directory
)

// pending is a batch on its way into the log and the store.
type pending struct {
	batch    *Batch
	number   uint64
	record   []byte // nil: not yet encoded
	notices  []Notice
	sequence uint64 // 0: not acknowledged
}

// getPosition reads the mark of the log; the zero LogPosition if there is none.
func getPosition(marks *bucket) (p LogPosition, err error) {
	v := marks.Get([]byte(markLog))
	if v == nil {
		return LogPosition{}, nil
	}
	d := wire.NewDecoder(v)
	p = LogPosition{d.Uint64(), d.Uint64()}
	if d.End() != nil || p.Number == 0 {
		return LogPosition{}, fmt.Errorf("%w: mark %s", ErrCorrupt, markLog)
	}
	return p, nil
}

// loadPosition reads the mark of the log. It also finds out whether a log may begin with this store.
func (s *Store) loadPosition(tx *txn, counters Counters) (err error) {
	marks := tx.Bucket(bucketMark)
	if s.position, err = getPosition(marks); err != nil || s.position.Number > 0 {
		return err
	}
	s.began = counters == Counters{}
	if first, _ := tx.Bucket(bucketScope).Cursor().First(); first != nil {
		s.began = false
	}
	return marks.Each(func(name, _ []byte) error {
		s.began = s.began && isLocal(string(name))
		return nil
	})
}

// effects is what decides what a batch does, besides the batch and the database.
type effects struct {
	limits   Limits
	onListed func(Noticed) (due time.Time, history [8]byte, ok bool) // nil: nobody
	decided  []Notice                                                // of a record, in place of onListed
	// runs when the batch has been applied; nil: nothing
	finish func(w *writer) error
}

// WriterID identifies a data directory among those that hold views of one log.
type WriterID [8]byte

// Limits are those of Options beyond which new URLs are refused as traps, in the types of the rows.
type Limits struct{ HostURLs, Queries, SameDigest uint32 }

// Notice is what Options.Notice said of a listed URL.
type Notice struct {
	Call    uint64 // the number of the call in its commit, from 0
	Due     uint32 // Unix seconds; 0: none
	History [8]byte
}

// Names of marks of the engine that describe files of one data directory: the lengths of the output
// files, and the requests that the request log has to name as uncommitted.
const (
	MarkOutput      = "output"
	MarkUncommitted = "unsaid"
)

// isLocal reports whether a mark describes files of one data directory. Such marks mean nothing anywhere else.
func isLocal(mark string) bool {
	switch mark {
	case MarkLedger, MarkOutput, MarkUncommitted, markView:
		return true
	}
	return false
}

// isLocal reports whether a batch has nothing but marks of this data directory.
func (b *Batch) isLocal() bool {
	for name := range b.Marks {
		if !isLocal(name) {
			return false
		}
	}
	rest := *b
	rest.Marks = nil
	return rest.Empty()
}

// Discovery is a discovery for another shard. Its page has no id there, so it has a text.
type Discovery struct {
	Found Found  // ViaHost and ViaOrdinal mean nothing
	Via   string // the URL of the page; empty: it was not found on a page
}
