//go:build !core

package archive

import "errors"

// ErrUnreadable means that a file is damaged, so that it is not known what it holds.
var ErrUnreadable = errors.New("archive: the file cannot be read to its end")

// ErasedFile counts what an erasure removes from one file of the output.
type ErasedFile struct {
	File    string         `json:"file"`
	Records map[string]int `json:"records"` // by WARC type, or by format for lines
	Bytes   int64          `json:"bytes"`   // by which the file is shorter
}
