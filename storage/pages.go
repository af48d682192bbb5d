package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/storage/internal/boltfile"
)

// boltSize returns the least size of the file in bytes, according to the newest valid meta page.
func boltSize(f io.ReaderAt) (int64, error) {
	metas := boltfile.Metas(f)
	if len(metas) == 0 {
		return 0, ErrNotDatabase
	}
	size, ok := boltfile.Newest(metas).Size()
	if !ok {
		return 0, ErrNotDatabase
	}
	return size, nil
}

// inspect refuses files that must not be mapped: if a mapped file is shorter than its meta page
// says, the first read behind its end kills the process with SIGBUS.
func inspect(path string, readOnly bool) (fresh bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !readOnly {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%w: it is not a regular file", ErrNotDatabase)
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if info.Size() == 0 && !readOnly {
		return true, nil
	}
	locked, err := system.IsLocked(f) // by bbolt of another process, for as long as that has it open
	if locked {
		err = ErrInUse
	}
	if err != nil {
		return false, err
	}
	if info, err = f.Stat(); err != nil { // its size now that no process writes it
		return false, err
	}
	need, err := boltSize(f)
	if err != nil {
		return false, err
	}
	if info.Size() < need {
		return false, fmt.Errorf("%w: it has %d bytes and should have at least %d",
			ErrTruncated, info.Size(), need)
	}
	return false, nil
}

// smallFile is the size up to which Open reads all pages of a file, in a few milliseconds.
const smallFile = 16 << 20

// verify reads the pages that bbolt must be able to follow before it follows them: all branches, and the
// leaves of what a verdict needs and of small files. A branch that leads in a circle would end the
// process, and rows that bbolt does not find in a damaged page would look as if they were not there.
func (d *database) verify() error {
	metas := boltfile.Metas(d.file)
	if len(metas) == 0 {
		return ErrNotDatabase
	}
	var damage error
	w := boltfile.Walk{
		Ctx: context.Background(), File: d.file, Meta: boltfile.Newest(metas), Leaves: d.verified,
		Report: func(bucket, text string) {
			if damage == nil {
				damage = fmt.Errorf("%w: %s", ErrCorrupt, pageText(bucket, text))
			}
		},
	}
	return errors.Join(w.Run(), damage)
}

// verified reports whether Open reads all rows of a bucket.
func (d *database) verified(bucket string) bool {
	switch bucket {
	case string(bucketMeta), string(bucketMark), string(bucketScope), string(bucketName):
		return true
	}
	info, err := d.file.Stat()
	return err == nil && info.Size() <= smallFile
}

// verifyRows checks the checksums of the rows that verified names. Robots records are left out: one that
// is damaged is fetched again.
func (d *database) verifyRows() error {
	if !d.summed {
		return nil
	}
	return d.view(func(tx *txn) error {
		return tx.buckets(func(name []byte, b *bucket) error {
			if !d.verified(string(name)) || bytes.Equal(name, bucketRobots) || bytes.Equal(name, bucketRobotsHistory) {
				return nil
			}
			return b.each(func(_, _ []byte) error { return nil })
		})
	})
}

// pageText names the bucket of a page that is damaged.
func pageText(bucket, text string) string {
	if bucket == "" {
		return text
	}
	return fmt.Sprintf("bucket %s: %s", bucket, text)
}

// openPages opens a file that is not mapped, to read its pages.
func openPages(path string) (*os.File, boltfile.Meta, error) {
	if _, err := inspect(path, true); err != nil {
		return nil, boltfile.Meta{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, boltfile.Meta{}, err
	}
	return f, boltfile.Newest(boltfile.Metas(f)), nil
}

// isSummed reports whether the rows of a file that may be damaged have checksums.
func isSummed(f io.ReaderAt, m boltfile.Meta) (summed bool) {
	isMeta := func(bucket string) bool { return bucket == string(bucketMeta) }
	w := boltfile.Walk{Ctx: context.Background(), File: f, Meta: m, Leaves: isMeta, Report: func(_, _ string) {}}
	w.Row = func(_ string, k, v []byte) {
		_, sum := withoutSum(sumSeed(bucketMeta), k, v)
		summed = summed || sum || bytes.Equal(k, metaVersion) && len(v) == 4 && binary.BigEndian.Uint32(v) == Version
	}
	_ = w.Run() // the context does not end
	return summed
}
