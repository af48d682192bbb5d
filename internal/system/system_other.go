//go:build !unix

// Package system has what amble wants of the operating system and the standard library does not offer.
package system

import (
	"math"
	"os"
)

// IsLocked leaves this to the lock of whoever opens the file.
func IsLocked(*os.File) (bool, error) { return false, nil }

// Unlock leaves this to the lock of whoever opened the file.
func Unlock(*os.File) error { return nil }

// FreeBytes returns the room that is left on the file system of a directory. This system does not
// tell, so there is always enough.
func FreeBytes(string) (uint64, error) { return math.MaxUint64, nil }

// Room returns as much as there can be, for the same reason.
func Room(string) (free, size uint64, err error) { return math.MaxUint64, math.MaxUint64, nil }

// ForbidDump does nothing on this system.
func ForbidDump() {}

// Descriptors is not known on this system.
func Descriptors() (limit int, known bool) { return 0, false }
