package storage

import (
	"fmt"
	"maps"
)

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

// Codec is the form that changes have in a log.
type Codec interface {
	// Encode returns a change as the log has it. After an error the log cannot have it.
	Encode(*Change) ([]byte, error)
	// Decode is the inverse of Encode, but for fingerprints, which [Store.Replay] sets. The change may refer to the
	// bytes, which may be anything. The error is ErrNewer or ErrRecord.
	Decode([]byte) (*Change, error)
}

// ErrRecord says that a record of the log cannot be read.
var ErrRecord = fmt.Errorf("%w: a record of the log cannot be read", ErrCorrupt)

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
