//go:build !linux

package badsync

import "errors"

// Install is for Linux.
func Install(func(c Call, n int) bool) error { return errors.ErrUnsupported }
