//go:build !unix

package storage

import "os"

// lockedByOther leaves the question to bbolt's own lock.
func lockedByOther(*os.File) error { return nil }
