//go:build !core

package journal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/storage"
)

// snapshotVersion is the version of what a snapshot is.
const snapshotVersion = 1

// The names of what is kept with a snapshot.
const (
	metaVersion  = "amble-version"
	metaNumber   = "amble-number"   // of a record that it has
	metaSequence = "amble-sequence" // of that record
	metaIncoming = "amble-incoming" // up to which it has the URLs of other shards
	metaSHA256   = "amble-sha256"
	metaSize     = "amble-size"
	metaLog      = "amble-log" // the log that it belongs to
)

// Snapshot is a copy of the database of a shard in the object store.
type Snapshot struct {
	Name     string
	At       storage.LogPosition // a record that it has, and so all before it
	Incoming uint64              // the sequence up to which it has the URLs of other shards
	Size     int64               // bytes
	log      string              // the identity of the log that it belongs to
	sum      string
	version  int
}

// snapshotName is the name of the snapshot of a shard as of a record. Names in their order are
// snapshots in their order.
func snapshotName(shard int, number uint64) string { return fmt.Sprintf("%d.%020d", shard, number) }

// SnapshotsDue returns the shards of which a snapshot is due, the most overdue first: the log behind the last one
// is larger than that, and than Options.SnapshotAbove. It reads the list of the snapshots once.
func (s *Streams) SnapshotsDue(ctx context.Context) (due []int, err error) {
	newest, err := s.newest(ctx)
	if err != nil {
		return nil, err
	}
	logs, err := s.logBytes(ctx)
	over := func(n int) int64 { return logs[n] - max(s.o.SnapshotAbove, newest[n].Size) }
	for n := range logs {
		if over(n) > 0 {
			due = append(due, n)
		}
	}
	slices.SortFunc(due, func(a, b int) int { return cmp.Or(cmp.Compare(over(b), over(a)), cmp.Compare(a, b)) })
	return due, err
}

// newest returns the newest snapshot of each shard. One that cannot be read counts as none: the next replaces it.
func (s *Streams) newest(ctx context.Context) (map[int]Snapshot, error) {
	objects, err := s.objects(ctx)
	newest := make(map[int]Snapshot)
	for _, object := range objects {
		text, _, _ := strings.Cut(object.Name, ".")
		n, bad := strconv.Atoi(text)
		x, unreadable := parseSnapshot(&object.ObjectMeta)
		if bad == nil && unreadable == nil && x.At.Number >= newest[n].At.Number {
			newest[n] = x
		}
	}
	return newest, err
}

// logBytes estimates the bytes of the log of each shard, by its share of the messages of the stream.
func (s *Streams) logBytes(ctx context.Context) (map[int]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	info, err := s.log.Info(ctx, jetstream.WithSubjectFilter(s.o.Prefix+".log.*"))
	if err != nil {
		return nil, downError(err)
	}
	total := uint64(0)
	for _, messages := range info.State.Subjects {
		total += messages
	}
	logs := make(map[int]int64)
	for subject, messages := range info.State.Subjects {
		if n, err := strconv.Atoi(strings.TrimPrefix(subject, s.o.Prefix+".log.")); err == nil && n >= 0 &&
			n < s.o.Shards {
			logs[n] = int64(float64(info.State.Bytes) * float64(messages) / float64(total))
		}
	}
	return logs, nil
}

// WriteSnapshot copies a database to the object store. at is a position of its log, and incoming one of
// its URLs from other shards, that the copy has: read before backup is called. backup is
// [storage.Store.Backup]; dir is where the copy is kept meanwhile, in a file without a name, so that a kill leaves
// nothing of it. When the snapshot is durable, the
// log behind it and older snapshots are deleted.
func (s *Shard) WriteSnapshot(ctx context.Context, dir string, at storage.LogPosition, incoming uint64,
	backup func(begin func(size int64) (io.Writer, error)) (int64, error)) error {
	err := s.writeSnapshot(ctx, dir, at, incoming, backup)
	if err == nil {
		err = s.purge(ctx, at, incoming)
	}
	if err != nil {
		return fmt.Errorf("snapshot of shard %d: %w", s.n, err)
	}
	return nil
}

func (s *Shard) writeSnapshot(ctx context.Context, dir string, at storage.LogPosition, incoming uint64,
	backup func(begin func(size int64) (io.Writer, error)) (int64, error)) (err error) {
	if at.Number == 0 {
		return errors.New("the database has no position in a log")
	}
	f, err := os.CreateTemp(dir, "snapshot-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	sum := sha256.New()
	size, err := backup(func(int64) (io.Writer, error) { return &untilEnd{ctx, io.MultiWriter(f, sum)}, nil })
	if err != nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err) // bbolt has made a text of it
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	return s.putSnapshot(ctx, s.n, f,
		&Snapshot{At: at, Incoming: incoming, Size: size, sum: hex.EncodeToString(sum.Sum(nil))})
}

// untilEnd is a writer until a context ends: a copy of a large database must not keep a shard from its next owner.
type untilEnd struct {
	ctx context.Context
	to  io.Writer
}

func (w *untilEnd) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(b)
}

// putSnapshot stores a snapshot of a shard.
func (s *Streams) putSnapshot(ctx context.Context, n int, data io.Reader, x *Snapshot) error {
	_, err := s.snapshots.Put(ctx, jetstream.ObjectMeta{
		Name: snapshotName(n, x.At.Number), Metadata: map[string]string{
			metaVersion:  strconv.Itoa(snapshotVersion),
			metaNumber:   strconv.FormatUint(x.At.Number, 10),
			metaSequence: strconv.FormatUint(x.At.Sequence, 10),
			metaIncoming: strconv.FormatUint(x.Incoming, 10),
			metaSHA256:   x.sum,
			metaSize:     strconv.FormatInt(x.Size, 10),
			metaLog:      s.Identity(),
		},
	}, data)
	return downError(err)
}

// FirstPosition is the position of the first snapshot of a shard that has no log yet: its log goes on
// with record 2.
func FirstPosition() storage.LogPosition { return storage.LogPosition{Number: 1} }

// PutFirst stores a database, with FirstPosition as its position, as the first snapshot of a shard that
// nobody owns and that has no log.
func (s *Streams) PutFirst(ctx context.Context, n int, path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = s.putSnapshot(ctx, n, f,
			&Snapshot{At: FirstPosition(), Size: size, sum: hex.EncodeToString(sum.Sum(nil))})
	}
	if err != nil {
		return fmt.Errorf("snapshot of shard %d: %w", n, err)
	}
	return nil
}

// DeleteSnapshots deletes all snapshots of a cluster that is not in service.
func (s *Streams) DeleteSnapshots(ctx context.Context) error {
	objects, err := s.objects(ctx)
	for _, object := range objects {
		err = errors.Join(err, s.snapshots.Delete(ctx, object.Name))
	}
	if err != nil {
		return fmt.Errorf("delete snapshots: %w", downError(err))
	}
	return nil
}

// purge deletes what a durable snapshot makes superfluous: the log up to it, the URLs of other shards
// up to it, and all snapshots before the newest.
func (s *Shard) purge(ctx context.Context, at storage.LogPosition, incoming uint64) error {
	err := downError(s.log.Purge(ctx, jetstream.WithPurgeSubject(s.subject("log", s.n)),
		jetstream.WithPurgeSequence(at.Sequence+1)))
	err = errors.Join(err, s.forgetIncoming(ctx, incoming))
	all, listing := s.list(ctx)
	for _, old := range all[:max(0, len(all)-1)] {
		err = errors.Join(err, downError(s.snapshots.Delete(ctx, old.Name)))
	}
	return errors.Join(err, listing)
}

// list returns the snapshots of the shard, the newest last.
func (s *Shard) list(ctx context.Context) (all []Snapshot, err error) {
	objects, err := s.objects(ctx)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if strings.HasPrefix(object.Name, strconv.Itoa(s.n)+".") {
			snapshot, err := parseSnapshot(&object.ObjectMeta)
			if err != nil {
				return nil, err
			}
			all = append(all, snapshot)
		}
	}
	slices.SortFunc(all, func(a, b Snapshot) int { return cmp.Compare(a.At.Number, b.At.Number) })
	return all, nil
}

// objects returns the snapshots of all shards as the object store has them.
func (s *Streams) objects(ctx context.Context) ([]*jetstream.ObjectInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	objects, err := listObjects(ctx, s.snapshotReads, s.bucket())
	return objects, downError(err)
}

func parseSnapshot(m *jetstream.ObjectMeta) (x Snapshot, err error) {
	var errs [5]error
	x.Name, x.sum, x.log = m.Name, m.Metadata[metaSHA256], m.Metadata[metaLog]
	x.version, errs[0] = strconv.Atoi(m.Metadata[metaVersion])
	x.At.Number, errs[1] = strconv.ParseUint(m.Metadata[metaNumber], 10, 64)
	x.At.Sequence, errs[2] = strconv.ParseUint(m.Metadata[metaSequence], 10, 64)
	x.Incoming, errs[3] = strconv.ParseUint(m.Metadata[metaIncoming], 10, 64)
	x.Size, errs[4] = strconv.ParseInt(m.Metadata[metaSize], 10, 64)
	switch err := errors.Join(errs[:]...); {
	case errs[0] == nil && x.version > snapshotVersion:
		return x,
			fmt.Errorf("snapshot %s: %w (its version is %d, this amble reads up to %d): use a newer amble on this node",
				x.Name, storage.ErrNewer, x.version, snapshotVersion)
	case err != nil || x.version < 1 || x.At.Number == 0 || x.Size < 0 || len(x.sum) != 2*sha256.Size:
		return x, fmt.Errorf("%w: snapshot %s has no position, size or sum", storage.ErrRecord, m.Name)
	}
	return x, nil
}

// Restore makes the newest snapshot of the shard the database of a directory, in place of one that may
// be there, which nobody may have open. restored is false if there is no snapshot: then the log begins
// at its first record. What is behind the snapshot comes from [Shard.Replay].
func (s *Shard) Restore(ctx context.Context, dir string) (at storage.LogPosition, restored bool, err error) {
	all, err := s.list(ctx)
	if err == nil && len(all) > 0 {
		restored = true
		at, err = s.restore(ctx, dir, &all[len(all)-1])
	}
	if err != nil {
		return at, false, fmt.Errorf("restore shard %d: %w", s.n, err)
	}
	return at, restored, nil
}

func (s *Shard) restore(ctx context.Context, dir string, x *Snapshot) (at storage.LogPosition, err error) {
	if x.log != s.Identity() {
		return at, fmt.Errorf("%w: snapshot %s belongs to the log that was made at %s, this one was made at %s; %s",
			storage.ErrAhead, x.Name, x.log, s.Identity(), aheadAdvice)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return at, err
	}
	path := filepath.Join(dir, storage.SnapshotFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return at, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	if err = errors.Join(s.fetch(ctx, f, x), f.Sync(), f.Close()); err != nil {
		return at, fmt.Errorf("snapshot %s: %w", x.Name, err)
	}
	if at, err = storage.RestoreFile(path, dir); err == nil && at.Number < x.At.Number {
		err = fmt.Errorf("%w: snapshot %s ends at record %d", storage.ErrRecord, x.Name, at.Number)
	}
	return at, err
}

// fetch writes a snapshot to w and compares its sum. It reads the chunks itself, as messages of the stream of the
// object store: the library makes a consumer for each object.
func (s *Shard) fetch(ctx context.Context, w io.Writer, x *Snapshot) error {
	chunks, err := s.chunks(ctx, x)
	if err != nil {
		return err
	}
	sum, n := sha256.New(), int64(0)
	to := io.MultiWriter(w, sum)
	whole := span{0, math.MaxUint64, math.MaxUint64} // it ends with the last byte
	err = s.read(ctx, s.snapshotReads, chunks, whole, func(m *message) error {
		n += int64(len(m.Data))
		if _, err := to.Write(m.Data); err != nil {
			return err
		}
		if n >= x.Size {
			return errComplete
		}
		return nil
	})
	if err != nil && !errors.Is(err, errComplete) {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); n != x.Size || got != x.sum {
		return fmt.Errorf("%w: it has %d bytes with the sum %s, should have %d with %s",
			storage.ErrRecord, n, got, x.Size, x.sum)
	}
	return nil
}

// errComplete ends the reading of a snapshot that is complete.
var errComplete = errors.New("the snapshot is complete")

// chunks returns the subject of the chunks of a snapshot.
func (s *Shard) chunks(ctx context.Context, x *Snapshot) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	info, err := s.snapshots.GetInfo(ctx, x.Name)
	if err != nil {
		return "", downError(err)
	}
	if info.Size != uint64(x.Size) {
		return "", fmt.Errorf("%w: it has %d bytes, should have %d", storage.ErrRecord, info.Size, x.Size)
	}
	return fmt.Sprintf("$O.%s.C.%s", info.Bucket, info.NUID), nil
}
