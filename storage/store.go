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
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/amble-crawler/amble/storage/internal/boltfile"
	"github.com/amble-crawler/amble/storage/internal/rowfile"
)

// Version is the version of the layout that this code writes. The code also reads older versions
// and converts their rows when it writes them.
const Version = 6

// FileName is the name of the database in the data directory.
const FileName = "amble.db"

// The reasons why a store cannot be opened or written, for errors.Is.
var (
	ErrInUse       = rowfile.ErrInUse
	ErrNotDatabase = rowfile.ErrNotDatabase
	ErrNewer       = errors.New("written by a newer version of amble")
	ErrTruncated   = errors.New("the file is shorter than the database in it")
	ErrCorrupt     = rowfile.ErrCorrupt
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

// limits returns the limits in the types of the rows.
func (o *Options) limits() Limits {
	limit := func(n int) uint32 { return uint32(min(uint64(max(n, 0)), math.MaxUint32)) }
	return Limits{limit(o.MaxHostURLs), limit(o.MaxQueries), limit(o.MaxSameDigest)}
}

// Store is an open database. See the package comment for who may call what.
type Store struct {
	rows
	limits Limits
	notice func(Noticed) (time.Time, [8]byte, bool)
	writer *writer
	doubt  error // ErrInDoubt, after which there is no commit; for the committer only

	position LogPosition // in the log; for the committer only
	view     WriterID    // of this data directory; zero: not read yet
	pending  *pending    // on its way into the log; nil: nothing
	began    bool        // the store has nothing that a log would lack, so one may begin with it
}

// rows is what any goroutine may read of a database.
type rows struct {
	db       *database
	path     string
	key      [keySize]byte
	weaken   func(uint64) uint64 // for tests with colliding fingerprints; otherwise nil
	counters atomic.Pointer[Counters]
	created  bool   // by Open
	version  uint32 // of the file, when it was opened
}

// What reads and writes rows.
type (
	database  = rowfile.DB
	txn       = rowfile.Tx
	bucket    = rowfile.Bucket
	cursor    = rowfile.Cursor
	rowWriter = rowfile.Writer
)

// openDatabase opens a file, which is made if it does not exist. The caller says whether its rows have checksums.
func openDatabase(path string, mode os.FileMode, o Options) (*database, error) {
	d, err := rowfile.Open(path, rowfile.Options{
		Mode: mode, ReadOnly: o.ReadOnly, NoSync: o.NoSync, MaxBytes: o.MaxBytes, MapBytes: o.MapBytes,
		Damaged: damagedRow,
	})
	return d, spaceError(err)
}

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
	s := &Store{rows: rows{path: path}, limits: o.limits(), notice: o.Notice}
	s.writer = newWriter(s)
	if err := s.open(o); err != nil {
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
	var err error
	if s.db, err = openDatabase(s.path, 0o640, o); err != nil {
		return err
	}
	if err := s.checkPath(s.db.File); err != nil {
		return err
	}
	if err := verify(s.db); err != nil {
		return err
	}
	if err := s.load(o.ReadOnly); err != nil {
		return err
	}
	if err := verifyRows(s.db); err != nil || o.ReadOnly {
		return err
	}
	if !o.NoSync {
		if err := boltfile.Confirm(s.db.File); err != nil {
			return fmt.Errorf("sync what the last process committed: %w", spaceError(err))
		}
	}
	if s.db.Summed {
		return s.renewVersion()
	}
	if err := s.upgrade(); err != nil {
		return fmt.Errorf("bring the database over to version %d: %w", Version, err)
	}
	return s.open(o)
}

// renewVersion makes a file of version 5 one of this version: its rows are the same, but may not stay so.
func (s *Store) renewVersion() error {
	if s.version == Version {
		return nil
	}
	return spaceError(s.db.Update(func(tx *txn) error { return putVersion(tx.Bucket(bucketMeta).Put) }))
}

// checkPath returns an error if the locked file is no longer the one at its path: while Open waited
// for the lock, Compact may have replaced it.
func (s *rows) checkPath(f *os.File) error {
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

// Close closes the file. No other method may be called after it.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	return nil
}

// Created reports whether Open has found no database, or a file of 0 bytes, and made a new one.
func (s *rows) Created() bool { return s.created }

// Path returns the path of the database file.
func (s *rows) Path() string { return s.path }

var (
	metaVersion  = []byte("version")
	metaSums     = []byte("sums")
	metaKey      = []byte("key")
	metaCounters = []byte("counters")
)

// load reads the meta bucket. In a new file it creates the buckets.
func (s *Store) load(readOnly bool) error {
	fresh := false
	var counters Counters
	err := s.db.View(func(tx *txn) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			fresh = true
			return lacksMeta(tx, readOnly)
		}
		version, err := fileVersion(meta)
		if err != nil {
			return err
		}
		s.version, s.db.Summed = version, version >= firstSummed
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
		s.began, s.created = true, true
		err = s.create()
	}
	s.counters.Store(&counters)
	return err
}

// lacksMeta returns the error for a file without the bucket meta; nil: it is a new one.
func lacksMeta(tx *txn, readOnly bool) error {
	err := tx.Buckets(func([]byte, *bucket) error { return ErrNotDatabase })
	for _, name := range buckets() {
		if tx.Bucket(name) != nil {
			return fmt.Errorf("%w: bucket %s is missing", ErrCorrupt, bucketMeta)
		}
	}
	if err == nil && readOnly {
		return ErrNotDatabase
	}
	return err
}

// fileVersion returns the version of a file, or an error if this code cannot read that version. From
// version 5 on a file has its version twice, the second time with a checksum: if the one that all
// programs read were taken for that of an older file, so would be its rows.
func fileVersion(meta *bucket) (uint32, error) {
	v, again := meta.Bolt.Get(metaVersion), meta.Bolt.Get(metaSums)
	if again != nil {
		n, ok := rowfile.WithoutSum(rowfile.SumSeed(bucketMeta), metaSums, again)
		if !ok || !bytes.Equal(n, v) || len(v) != 4 {
			return 0, fmt.Errorf("%w: its version cannot be read", ErrCorrupt)
		}
	}
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
	case n >= firstSummed && again == nil:
		return 0, fmt.Errorf("%w: its version has no checksum", ErrCorrupt)
	}
	return n, nil
}

// firstSummed is the first version in which rows have checksums.
const firstSummed = 5

// putVersion writes the version of this code into the bucket meta.
func putVersion(put func(k, v []byte) error) error {
	version := binary.BigEndian.AppendUint32(nil, Version)
	return errors.Join(put(metaVersion, version), put(metaSums, version))
}

// addedLater reports whether a file of the given version may lack a bucket.
func addedLater(name []byte, version uint32) bool {
	return bytes.Equal(name, bucketPayload) || bytes.Equal(name, bucketRobotsHistory) ||
		version < 2 && bytes.Equal(name, bucketTrap) || version < 3 && bytes.Equal(name, bucketRecrawl) ||
		version < 4 && bytes.Equal(name, bucketMetadata)
}

func (s *Store) create() error {
	if _, err := rand.Read(s.key[:]); err != nil {
		return fmt.Errorf("create the key of the store: %w", err)
	}
	return spaceError(s.db.Update(func(tx *txn) error {
		for _, name := range buckets() {
			if _, err := tx.MakeBucket(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		return errors.Join(
			putVersion(meta.Put),
			meta.Put(metaKey, s.key[:]),
			meta.Put(metaCounters, appendCounters(nil, Counters{})),
		)
	}))
}

// transaction holds the buckets and cursors of bbolt while a batch is written.
type transaction struct {
	tx                                               *txn
	host, url, seen, state, due, recrawl, name, trap *bucket
	hostRows, urlRows, stateRows, nameRows           *cursor
	seenCursor, dueCursor, recrawlCursor             *cursor
}

func (w *writer) begin(tx *txn) {
	w.tx = tx
	w.host, w.url, w.seen = tx.Bucket(bucketHost), tx.Bucket(bucketURL), tx.Bucket(bucketSeen)
	w.state, w.due, w.name = tx.Bucket(bucketState), tx.Bucket(bucketDue), tx.Bucket(bucketName)
	w.recrawl, w.trap = tx.Bucket(bucketRecrawl), tx.Bucket(bucketTrap)
	w.url.Fill(rowfile.AppendFill)
	w.state.Fill(rowfile.AppendFill)
	w.hostRows, w.urlRows, w.stateRows = w.host.Cursor(), w.url.Cursor(), w.state.Cursor()
	w.nameRows = w.name.Cursor()
	w.seenCursor, w.dueCursor, w.recrawlCursor = w.seen.Cursor(), w.due.Cursor(), w.recrawl.Cursor()
}
