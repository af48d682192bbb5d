//go:build !core

// Package oncomplete runs a command for each finished file of the output, at least once: it takes the file to another
// place, or tells somebody of it. docs/OUTPUT.md describes it.
//
// A file is finished when it has its final name: from then on nothing needs or changes it. A Runner looks for such
// files in directories, computes the checksum of each, and runs the command. A file whose command has succeeded is
// written to a journal, one line a file, before the next one begins. So whatever stops the process, each file is given
// to the command again until it has succeeded once; a kill between the success and the journal repeats it, with the
// same name and checksum.
package oncomplete
