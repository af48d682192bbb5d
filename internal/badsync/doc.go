// Package badsync makes syncs fail in the process that asks for it, as those of a failing disk do,
// so that tests can see what a program does then.
package badsync

// Call is how a file is synced.
type Call int

// The system calls that sync a file.
const (
	Fdatasync Call = iota // of the database for each commit
	Fsync                 // of all else
)
