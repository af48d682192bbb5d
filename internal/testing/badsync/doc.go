// Package badsync makes syncs fail in its process, like those of a failing disk, so that tests can
// check what a program does then.
package badsync

// Call is the system call that syncs a file.
type Call int

// The system calls that sync a file.
const (
	Fdatasync Call = iota // of the database for each commit
	Fsync                 // of all other files
)
