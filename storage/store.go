package storage

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Version is the version of the layout that this code writes. The code also reads older versions
// and converts their rows when it writes them.
const Version = 4

// FileName is the name of the database in the data directory.
const FileName = "amble.db"

// The reasons why a store cannot be opened or written, for errors.Is.
var (
	ErrInUse       = errors.New("the database is in use by another process")
	ErrNotDatabase = errors.New("not an amble database")
	ErrNewer       = errors.New("written by a newer version of amble")
	ErrTruncated   = errors.New("the file is shorter than the database in it")
	ErrCorrupt     = errors.New("the database is damaged")
	ErrNoSpace     = errors.New("no space left")
	ErrMaxSize     = fmt.Errorf("%w: it has its maximum size", ErrNoSpace) // Options.MaxBytes
	ErrNotFound    = errors.New("not in the database")
	ErrInDoubt     = errors.New("the last sync failed, so the commit may or may not be durable")
)

// spaceError wraps an error that goes away when there is room again with ErrNoSpace.
func spaceError(err error) error {
	if err != nil && strings.Contains(err.Error(), berrors.ErrMaxSizeReached.Error()) {
		return fmt.Errorf("%w: %w", ErrMaxSize, err)
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		// bbolt returns some errors of the system as text.
		if errors.Is(err, full) || err != nil && strings.Contains(err.Error(), full.Error()) {
			return fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
	}
	return err
}

// Options are the options of Open. The zero value is ready for use.
type Options struct {
	ReadOnly bool // for inspection; fails too while another process has the file open
	NoSync   bool // for benchmarks only: a power cut may then destroy the file
	MaxBytes int  // the file may not grow beyond this; 0: no limit
	MapBytes int  // address space to map, so that growth need not wait for readers; 0: 16 GiB, or 256 MiB on 32 bits

	// The limits beyond which new URLs are refused as traps; 0 switches a limit off. They change
	// nothing that is stored.
	MaxHostURLs   int // URLs of one host
	MaxQueries    int // different queries of one path
	MaxSameDigest int // pages of one host with the same content whose links are accepted

	// If Notice is not nil, the committer calls it for each Found about a known URL that has
	// Modified or Listed set. It returns the time of the next recrawl and the change history that
	// replace those of the URL; ok is false if nothing changes.
	Notice func(Noticed) (due time.Time, history [8]byte, ok bool)
}

// limits are the limits of Options in the types of the rows.
type limits struct{ hostURLs, queries, sameDigest uint32 }

func (o *Options) limits() limits {
	limit := func(n int) uint32 { return uint32(min(uint64(max(n, 0)), math.MaxUint32)) }
	return limits{limit(o.MaxHostURLs), limit(o.MaxQueries), limit(o.MaxSameDigest)}
}

// Store is an open database. See the package comment for who may call what.
type Store struct {
	db       *bolt.DB
	path     string
	key      [keySize]byte
	limits   limits
	notice   func(Noticed) (time.Time, [8]byte, bool)
	weaken   func(uint64) uint64 // for tests with colliding fingerprints; otherwise nil
	writer   *writer
	counters atomic.Pointer[Counters]
	doubt    error // ErrInDoubt, after which there is no commit; for the committer only

	position LogPosition // in the log; for the committer only
	view     writerID    // of this data directory; zero: not read yet
	pending  *pending    // on its way into the log; nil: nothing
	began    bool        // the store has nothing that a log would lack, so one may begin with it
}

// openTimeout is how long Open waits for the lock of another process.
const openTimeout = 300 * time.Millisecond

// defaultMapBytes is 16 GiB, and 256 MiB where addresses have 32 bits.
const defaultMapBytes = 1 << (28 + bits.UintSize/64*6)

// Open opens the database in a directory and creates both if necessary. It inspects the file before
// it maps or changes anything: it refuses a file that is in use (ErrInUse), not a database
// (ErrNotDatabase), cut short (ErrTruncated) or of a newer version (ErrNewer), and leaves it as it
// is. When Open returns, all that the store shows is durable, however the last process ended.
func Open(dir string, o Options) (*Store, error) {
	path := filepath.Join(dir, FileName)
	if !o.ReadOnly {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("create data directory: %w", err)
		}
	}
	fresh, err := inspect(path, o.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if o.MapBytes == 0 {
		o.MapBytes = defaultMapBytes
	}
	s := &Store{path: path, limits: o.limits(), notice: o.Notice}
	s.writer = newWriter(s)
	if err := guard(func() error { return s.open(o) }); err != nil {
		if s.db != nil {
			err = errors.Join(err, s.db.Close())
		}
		if fresh && errors.Is(err, ErrNoSpace) {
			err = errors.Join(err, os.Remove(path)) // the part that found room is no database
		}
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return s, nil
}

func (s *Store) open(o Options) error {
	var file *os.File // the one that is locked
	db, err := bolt.Open(s.path, 0o640, &bolt.Options{
		Timeout:         openTimeout,
		FreelistType:    bolt.FreelistMapType,
		ReadOnly:        o.ReadOnly,
		NoSync:          o.NoSync,
		MaxSize:         o.MaxBytes,
		InitialMmapSize: o.MapBytes,
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		},
	})
	if err != nil {
		return openError(err)
	}
	s.db = db
	if err := s.checkPath(file); err != nil {
		return err
	}
	if err := s.load(o.ReadOnly); err != nil || o.ReadOnly || o.NoSync {
		return err
	}
	if err := confirm(file); err != nil {
		return fmt.Errorf("sync what the last process committed: %w", spaceError(err))
	}
	return nil
}

// checkPath returns an error if the locked file is no longer the one at its path: while Open waited
// for the lock, Compact may have replaced it.
func (s *Store) checkPath(f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	atPath, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if !os.SameFile(opened, atPath) {
		return fmt.Errorf("%w: it was just compacted; try again", ErrInUse)
	}
	return nil
}

// guard calls f and turns what bbolt does with a damaged page, a panic or an access to unmapped
// memory, into an error.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, r)
		}
	}()
	return f()
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

// Close closes the file. No other method may be called after it.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	return nil
}

// Path returns the path of the database file.
func (s *Store) Path() string { return s.path }

var (
	metaVersion  = []byte("version")
	metaKey      = []byte("key")
	metaCounters = []byte("counters")
)

// load reads the meta bucket. In a new file it creates the buckets.
func (s *Store) load(readOnly bool) error {
	fresh := false
	var counters Counters
	err := s.db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			if k, _ := tx.Cursor().First(); k != nil || readOnly {
				return ErrNotDatabase
			}
			fresh = true
			return nil
		}
		version, err := fileVersion(meta)
		if err != nil {
			return err
		}
		if k := meta.Get(metaKey); len(k) != keySize {
			return fmt.Errorf("%w: its key is missing", ErrCorrupt)
		} else {
			copy(s.key[:], k)
		}
		for _, name := range buckets() {
			if tx.Bucket(name) == nil && !addedLater(name, version) {
				return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, name)
			}
		}
		var ok bool
		if counters, ok = decodeCounters(meta.Get(metaCounters)); !ok {
			return fmt.Errorf("%w: its counters cannot be read", ErrCorrupt)
		}
		return s.loadPosition(tx, counters)
	})
	if err == nil && fresh {
		s.began = true
		err = s.create()
	}
	s.counters.Store(&counters)
	return err
}

// fileVersion returns the version of a file, or an error if this code cannot read that version.
func fileVersion(meta *bolt.Bucket) (uint32, error) {
	v := meta.Get(metaVersion)
	if len(v) != 4 {
		return 0, fmt.Errorf("%w: it has no version", ErrNotDatabase)
	}
	n := binary.BigEndian.Uint32(v)
	switch {
	case n == 0:
		return 0, fmt.Errorf("%w: its version is 0", ErrNotDatabase)
	case n > Version:
		return 0, fmt.Errorf("%w (its version is %d, this amble reads up to %d): use a newer amble or another data_dir",
			ErrNewer, n, Version)
	}
	return n, nil
}

// addedLater reports whether a file of the given version may lack a bucket.
func addedLater(name []byte, version uint32) bool {
	return bytes.Equal(name, bucketPayload) || bytes.Equal(name, bucketRobotsHistory) ||
		version < 2 && bytes.Equal(name, bucketTrap) || version < 3 && bytes.Equal(name, bucketRecrawl) ||
		version < 4 && bytes.Equal(name, bucketMetadata)
}

// upgrade sets the version of an older file to Version. It runs in the first transaction that
// writes rows of this version. Rows of an older version stay as they are until they are next
// written.
func upgrade(tx *bolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if version, err := fileVersion(meta); err != nil || version == Version {
		return err
	}
	for _, name := range [][]byte{bucketTrap, bucketRecrawl, bucketMetadata} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return fmt.Errorf("upgrade the file to version %d: %w", Version, err)
		}
	}
	return meta.Put(metaVersion, binary.BigEndian.AppendUint32(nil, Version))
}

func (s *Store) create() error {
	if _, err := rand.Read(s.key[:]); err != nil {
		return fmt.Errorf("create the key of the store: %w", err)
	}
	return spaceError(s.db.Update(func(tx *bolt.Tx) error {
		for _, name := range buckets() {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		return errors.Join(
			meta.Put(metaVersion, binary.BigEndian.AppendUint32(nil, Version)),
			meta.Put(metaKey, s.key[:]),
			meta.Put(metaCounters, appendCounters(nil, Counters{})),
		)
	}))
}

// transaction holds the buckets and cursors of bbolt while a batch is written.
type transaction struct {
	tx                                               *bolt.Tx
	host, url, seen, state, due, recrawl, name, trap *bolt.Bucket
	hostRows, urlRows, stateRows                     rows
	seenCursor, dueCursor, recrawlCursor             *bolt.Cursor
}

// appendFill is the fill of the pages of url and state, whose rows arrive in the order of their
// keys within a host. With bbolt's half, the file would be a third larger.
const appendFill = 0.9

func (w *writer) begin(tx *bolt.Tx) {
	w.tx = tx
	w.host, w.url, w.seen = tx.Bucket(bucketHost), tx.Bucket(bucketURL), tx.Bucket(bucketSeen)
	w.state, w.due, w.name = tx.Bucket(bucketState), tx.Bucket(bucketDue), tx.Bucket(bucketName)
	w.recrawl, w.trap = tx.Bucket(bucketRecrawl), tx.Bucket(bucketTrap)
	w.url.FillPercent, w.state.FillPercent = appendFill, appendFill
	w.hostRows, w.urlRows, w.stateRows = rows{w.host.Cursor()}, rows{w.url.Cursor()}, rows{w.state.Cursor()}
	w.seenCursor, w.dueCursor, w.recrawlCursor = w.seen.Cursor(), w.due.Cursor(), w.recrawl.Cursor()
}

// rows finds the values of a bucket by their keys with one cursor, where Bucket.Get makes one for
// every call.
type rows struct{ cursor *bolt.Cursor }

// get returns the value of a key, or nil.
func (r rows) get(key []byte) []byte {
	if k, v := r.cursor.Seek(key); bytes.Equal(k, key) {
		return v
	}
	return nil
}

// arena holds the values of one transaction. bbolt refers to them until the commit; then the next
// transaction uses the memory again.
type arena struct {
	chunks [][]byte
	used   int // chunks in use, the last of them not yet full
}

// The size of the chunks of an arena: each is twice as large as the one before, up to arenaChunk. So a
// database with small transactions takes little memory.
const arenaFirst, arenaChunk = 16 << 10, 1 << 20

// copy returns a copy of b that is valid until reset.
func (a *arena) copy(b []byte) []byte {
	if len(b) > arenaChunk/4 {
		return append([]byte(nil), b...)
	}
	for a.used == 0 || len(a.chunks[a.used-1])+len(b) > cap(a.chunks[a.used-1]) {
		if n := len(a.chunks); a.used == n {
			a.chunks = append(a.chunks, make([]byte, 0, max(min(arenaFirst<<min(n, 8), arenaChunk), len(b))))
		}
		a.used++
	}
	chunk := &a.chunks[a.used-1]
	at := len(*chunk)
	*chunk = append(*chunk, b...)
	return (*chunk)[at:len(*chunk):len(*chunk)]
}

// reset makes the memory free for the next transaction. It releases what the last one did not use,
// so that one large transaction does not keep its memory for ever.
func (a *arena) reset() {
	clear(a.chunks[a.used:])
	a.chunks = a.chunks[:a.used]
	for i := range a.chunks {
		a.chunks[i] = a.chunks[i][:0]
	}
	a.used = 0
}
