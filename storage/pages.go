package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

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
func verify(d *database) error {
	metas := boltfile.Metas(d.File)
	if len(metas) == 0 {
		return ErrNotDatabase
	}
	var damage error
	w := boltfile.Walk{
		Ctx: context.Background(), File: d.File, Meta: boltfile.Newest(metas),
		Leaves: verified(d),
		Report: func(bucket, text string) {
			if damage == nil {
				damage = fmt.Errorf("%w: %s", ErrCorrupt, pageText(bucket, text))
			}
		},
	}
	return errors.Join(w.Run(), damage)
}

// verified returns which buckets Open reads all rows of.
func verified(d *database) func(bucket string) bool {
	info, err := d.File.Stat()
	all := err == nil && info.Size() <= smallFile
	always := []string{string(bucketMeta), string(bucketMark), string(bucketScope), string(bucketName)}
	return func(bucket string) bool { return all || slices.Contains(always, bucket) }
}

// verifyRows checks the checksums of the rows that verified names. Robots records are left out: one that
// is damaged is fetched again.
func verifyRows(d *database) error {
	if !d.Summed {
		return nil
	}
	read := verified(d)
	return d.View(func(tx *txn) error {
		return tx.Buckets(func(name []byte, b *bucket) error {
			if !read(string(name)) || bytes.Equal(name, bucketRobots) || bytes.Equal(name, bucketRobotsHistory) {
				return nil
			}
			return b.Each(func(_, _ []byte) error { return nil })
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
