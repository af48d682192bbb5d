//go:build !unix || android

package storage

import (
	"errors"
	"os"
)

// duplicate is for systems where a lock belongs to an open file. On others the file stays open.
func duplicate(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }

func lock(*os.File) error { return nil }
