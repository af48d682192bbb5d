package rowfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/storage/internal/arena"
)

// DB is an open bbolt file. Every transaction is one of its methods, which turn what bbolt does
// with a damaged page, and what a row without its checksum is, into ErrCorrupt.
type DB struct {
	Bolt   *bolt.DB // for tests and Stats
	File   *os.File // the one that is locked
	Summed bool     // the rows have checksums

	damaged func(bucket, key []byte) error // for a row without its checksum
	arena   arena.Arena                    // the values that the transaction at hand writes
	stuck   atomic.Bool                    // bbolt keeps one of its locks after a failure
}

// The reasons why a file cannot be opened or read.
var (
	ErrInUse       = errors.New("the database is in use by another process")
	ErrNotDatabase = errors.New("not an amble database")
	ErrCorrupt     = errors.New("the database is damaged")
)

// Options are those of Open.
type Options struct {
	Mode     os.FileMode // of a new file
	ReadOnly bool
	NoSync   bool // nothing is durable before Sync
	MaxBytes int  // the file may not grow beyond this; 0: no limit
	MapBytes int  // address space to map

	// Damaged returns the error for a row without its checksum. It wraps ErrCorrupt.
	Damaged func(bucket, key []byte) error
}

// openTimeout is how long Open waits for the lock of another process.
const openTimeout = 300 * time.Millisecond

// Open opens a file, which is made if it does not exist. Its rows have checksums unless the caller clears Summed. The
// errors are ErrInUse, ErrNotDatabase, ErrCorrupt and those of the system.
func Open(path string, o Options) (*DB, error) {
	d := &DB{Summed: true, damaged: o.Damaged}
	err := Guard(func() (err error) {
		d.Bolt, err = bolt.Open(path, o.Mode, &bolt.Options{
			Timeout:         openTimeout,
			FreelistType:    bolt.FreelistMapType,
			ReadOnly:        o.ReadOnly,
			NoSync:          o.NoSync,
			MaxSize:         o.MaxBytes,
			InitialMmapSize: o.MapBytes,
			OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
				d.File, err = os.OpenFile(name, flag, mode)
				return d.File, err
			},
		})
		return err
	})
	if err == nil {
		return d, nil
	}
	if d.File != nil {
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
	return err
}

// View runs f in a transaction that reads.
func (d *DB) View(f func(*Tx) error) error { return d.run(d.Bolt.View, f) }

// Update runs f in a transaction that writes, and commits it unless f returns an error.
func (d *DB) Update(f func(*Tx) error) error {
	return d.run(d.Bolt.Update, func(tx *Tx) error {
		d.arena.Reset()
		return f(tx)
	})
}

func (d *DB) run(in func(func(*bolt.Tx) error) error, f func(*Tx) error) error {
	if d.stuck.Load() {
		return fmt.Errorf("%w: it cannot be read any more since a transaction failed", ErrCorrupt)
	}
	var tx *bolt.Tx
	returned := false
	err := Guard(func() error {
		err := in(func(t *bolt.Tx) error {
			tx = t
			return f(&Tx{t, d})
		})
		returned = true
		return err
	})
	if !returned && (tx == nil || tx.DB() != nil) { // the transaction did not end
		d.stuck.Store(true)
	}
	return err
}

// Begin begins a transaction that writes, for those who end it themselves.
func (d *DB) Begin() (tx *Tx, err error) {
	err = Guard(func() error {
		t, err := d.Bolt.Begin(true)
		tx = &Tx{t, d}
		d.arena.Reset()
		return err
	})
	return tx, err
}

// PageSize returns the size of a page in bytes.
func (d *DB) PageSize() int { return d.Bolt.Info().PageSize }

// Sync makes all that was committed durable.
func (d *DB) Sync() error { return d.Bolt.Sync() }

func (d *DB) Close() error {
	if d.stuck.Load() { // bbolt would wait for its own locks
		return d.release()
	}
	err := d.Bolt.Close()
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return nil
	}
	return err
}

// release gives up the lock of the file and closes it, without bbolt: the file stays mapped.
func (d *DB) release() error {
	return errors.Join(system.Unlock(d.File), d.File.Close())
}

// Guard calls f and turns what bbolt and decoders do with damaged bytes, a panic or an access to
// unmapped memory, into ErrCorrupt. A panic of another package goes on: it is a defect of the program.
func Guard(f func() error) (err error) {
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
		case began && !strings.Contains(frame.Function, "rowfile.Guard.func"):
			return frame.Function
		}
		if at = frame.Function; !more {
			return at
		}
	}
}

// readsRows reports whether a function belongs to what reads pages and rows.
func readsRows(function string) bool {
	for _, of := range []string{"go.etcd.io/bbolt", "hash/crc32.", "/amble/storage.", "/amble/storage/internal/",
		"/amble/internal/wire."} {
		if strings.Contains(function, of) {
			return true
		}
	}
	return false
}

// Tx is a transaction.
type Tx struct {
	Bolt *bolt.Tx // for tests
	db   *DB
}

// ID returns the number of the transaction: what is read is what the transaction with this number, or
// the one before if it writes, has committed.
func (t *Tx) ID() int { return t.Bolt.ID() }

// Bucket returns a bucket, nil if there is none.
func (t *Tx) Bucket(name []byte) *Bucket {
	if b := t.Bolt.Bucket(name); b != nil {
		return t.wrap(name, b)
	}
	return nil
}

func (t *Tx) wrap(name []byte, b *bolt.Bucket) *Bucket {
	return &Bucket{Bolt: b, Name: name, db: t.db, seed: SumSeed(name)}
}

// MakeBucket returns a bucket, which is made if there is none.
func (t *Tx) MakeBucket(name []byte) (*Bucket, error) {
	b, err := t.Bolt.CreateBucketIfNotExists(name)
	if err != nil {
		return nil, err
	}
	return t.wrap(name, b), nil
}

// Buckets calls f for all buckets.
func (t *Tx) Buckets(f func(name []byte, b *Bucket) error) error {
	return t.Bolt.ForEach(func(name []byte, b *bolt.Bucket) error {
		if b == nil {
			panic(damage{fmt.Errorf("%w: it has a row in place of a bucket", ErrCorrupt)})
		}
		return f(name, t.wrap(name, b))
	})
}

// WriteTo writes a copy of the file as of the transaction.
func (t *Tx) WriteTo(w io.Writer) (int64, error) { return t.Bolt.WriteTo(w) }

// Size returns the length of such a copy.
func (t *Tx) Size() int64 { return t.Bolt.Size() }

// OnCommit has f called after the commit, with the bytes of the pages that it wrote.
func (t *Tx) OnCommit(f func(changed int64)) {
	t.Bolt.OnCommit(func() {
		stats := t.Bolt.Stats()
		f(stats.GetPageAlloc())
	})
}

// Commit commits a transaction of begin.
func (t *Tx) Commit() error { return Guard(t.Bolt.Commit) }

// Rollback ends a transaction of begin without a commit.
func (t *Tx) Rollback() error { return Guard(t.Bolt.Rollback) }
