package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/storage/internal/arena"
)

// database is an open bbolt file. Every transaction is one of its methods, which turn what bbolt does
// with a damaged page, and what a row without its checksum is, into ErrCorrupt.
type database struct {
	bolt   *bolt.DB
	file   *os.File    // the one that is locked
	summed bool        // the rows have checksums: the file is of version 5 or later
	arena  arena.Arena // the values that the transaction at hand writes
	stuck  atomic.Bool // bbolt keeps one of its locks after a failure
}

// openDatabase opens a file, which is made if it does not exist. The caller says whether its rows have
// checksums.
func openDatabase(path string, mode os.FileMode, o Options) (*database, error) {
	d := &database{summed: true}
	err := guard(func() (err error) {
		d.bolt, err = bolt.Open(path, mode, &bolt.Options{
			Timeout:         openTimeout,
			FreelistType:    bolt.FreelistMapType,
			ReadOnly:        o.ReadOnly,
			NoSync:          o.NoSync,
			MaxSize:         o.MaxBytes,
			InitialMmapSize: o.MapBytes,
			OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
				d.file, err = os.OpenFile(name, flag, mode)
				return d.file, err
			},
		})
		return err
	})
	if err == nil {
		return d, nil
	}
	if d.file != nil {
		_ = d.release() // bbolt has closed it unless it failed at a damaged page
	}
	return nil, openError(err)
}

func openError(err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return ErrInUse
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch),
		errors.Is(err, berrors.ErrChecksum):
		return fmt.Errorf("%w: %w", ErrNotDatabase, err)
	}
	return spaceError(err)
}

// view runs f in a transaction that reads.
func (d *database) view(f func(*txn) error) error { return d.run(d.bolt.View, f) }

// update runs f in a transaction that writes, and commits it unless f returns an error.
func (d *database) update(f func(*txn) error) error {
	return d.run(d.bolt.Update, func(tx *txn) error {
		d.arena.Reset()
		return f(tx)
	})
}

func (d *database) run(in func(func(*bolt.Tx) error) error, f func(*txn) error) error {
	if d.stuck.Load() {
		return fmt.Errorf("%w: it cannot be read any more since a transaction failed", ErrCorrupt)
	}
	var tx *bolt.Tx
	returned := false
	err := guard(func() error {
		err := in(func(t *bolt.Tx) error {
			tx = t
			return f(&txn{t, d})
		})
		returned = true
		return err
	})
	if !returned && (tx == nil || tx.DB() != nil) { // the transaction did not end
		d.stuck.Store(true)
	}
	return err
}

// begin begins a transaction that writes, for those who end it themselves.
func (d *database) begin() (tx *txn, err error) {
	err = guard(func() error {
		t, err := d.bolt.Begin(true)
		tx = &txn{t, d}
		d.arena.Reset()
		return err
	})
	return tx, err
}

// pageSize returns the size of a page in bytes.
func (d *database) pageSize() int { return d.bolt.Info().PageSize }

// sync makes all that was committed durable.
func (d *database) sync() error { return d.bolt.Sync() }

func (d *database) close() error {
	if d.stuck.Load() { // bbolt would wait for its own locks
		return d.release()
	}
	err := d.bolt.Close()
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return nil
	}
	return err
}

// release gives up the lock of the file and closes it, without bbolt: the file stays mapped.
func (d *database) release() error {
	return errors.Join(system.Unlock(d.file), d.file.Close())
}

// guard calls f and turns what bbolt and decoders do with damaged bytes, a panic or an access to
// unmapped memory, into ErrCorrupt. A panic of another package goes on: it is a defect of the program.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if d, ok := cause.(damage); ok {
			err = d.err
			return
		}
		at := panicked()
		if !readsRows(at) {
			panic(cause)
		}
		err = fmt.Errorf("%w: %v (%s)", ErrCorrupt, cause, at[strings.LastIndexByte(at, '/')+1:])
	}()
	return f()
}

// damage is the panic for bytes that are not what was written.
type damage struct{ err error }

// panicked returns the function in which the panic at hand began.
func panicked() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	at, began := "", false
	for {
		frame, more := frames.Next()
		switch {
		case strings.HasPrefix(frame.Function, "runtime."):
			began = began || frame.Function == "runtime.gopanic"
		case began && !strings.Contains(frame.Function, "storage.guard.func"):
			return frame.Function
		}
		if at = frame.Function; !more {
			return at
		}
	}
}

// readsRows reports whether a function belongs to what reads pages and rows.
func readsRows(function string) bool {
	for _, of := range []string{"go.etcd.io/bbolt", "hash/crc32.", "/amble/storage.", "/amble/internal/wire."} {
		if strings.Contains(function, of) {
			return true
		}
	}
	return false
}

// txn is a transaction of a database.
type txn struct {
	bolt *bolt.Tx
	db   *database
}

// id returns the number of the transaction: what is read is what the transaction with this number, or
// the one before if it writes, has committed.
func (t *txn) id() int { return t.bolt.ID() }

// bucket returns a bucket, nil if there is none.
func (t *txn) bucket(name []byte) *bucket {
	if b := t.bolt.Bucket(name); b != nil {
		return t.wrap(name, b)
	}
	return nil
}

func (t *txn) wrap(name []byte, b *bolt.Bucket) *bucket {
	return &bucket{bolt: b, name: name, db: t.db, seed: sumSeed(name)}
}

// makeBucket returns a bucket, which is made if there is none.
func (t *txn) makeBucket(name []byte) (*bucket, error) {
	b, err := t.bolt.CreateBucketIfNotExists(name)
	if err != nil {
		return nil, err
	}
	return t.wrap(name, b), nil
}

// buckets calls f for all buckets.
func (t *txn) buckets(f func(name []byte, b *bucket) error) error {
	return t.bolt.ForEach(func(name []byte, b *bolt.Bucket) error {
		if b == nil {
			panic(damage{fmt.Errorf("%w: it has a row in place of a bucket", ErrCorrupt)})
		}
		return f(name, t.wrap(name, b))
	})
}

// writeTo writes a copy of the file as of the transaction.
func (t *txn) writeTo(w io.Writer) (int64, error) { return t.bolt.WriteTo(w) }

// size returns the length of such a copy.
func (t *txn) size() int64 { return t.bolt.Size() }

// onCommit has f called after the commit, with the bytes of the pages that it wrote.
func (t *txn) onCommit(f func(changed int64)) {
	t.bolt.OnCommit(func() {
		stats := t.bolt.Stats()
		f(stats.GetPageAlloc())
	})
}

// commit commits a transaction of begin.
func (t *txn) commit() error { return guard(t.bolt.Commit) }

// rollback ends a transaction of begin without a commit.
func (t *txn) rollback() error { return guard(t.bolt.Rollback) }
