package storage

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	berrors "go.etcd.io/bbolt/errors"
)

// Why a store cannot be opened or written; test with errors.Is.
var (
	ErrInUse       = errors.New("the database is in use by another process")
	ErrNotDatabase = errors.New("not an amble database")
	ErrNewer       = errors.New("written by a newer version of amble")
	ErrTruncated   = errors.New("the file is shorter than the database in it")
	ErrCorrupt     = errors.New("the database is damaged")
	ErrNoSpace     = errors.New("no space left")
	ErrMaxSize     = fmt.Errorf("%w: it is as large as it may be", ErrNoSpace) // Options.MaxBytes
	ErrNotFound    = errors.New("not in the database")
	ErrInDoubt     = errors.New("the disk failed while it was synced, so it is not known whether it is committed")
)

// spaceError marks errors that go away when there is room again.
func spaceError(err error) error {
	if err != nil && strings.Contains(err.Error(), berrors.ErrMaxSizeReached.Error()) {
		return fmt.Errorf("%w: %w", ErrMaxSize, err)
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		// bbolt passes some errors of the system on as text.
		if errors.Is(err, full) || err != nil && strings.Contains(err.Error(), full.Error()) {
			return fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
	}
	return err
}
