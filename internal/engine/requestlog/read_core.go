//go:build core

package requestlog

// Query selects the files to read.
type Query struct{ LedgerOffset uint64 }

// Read reads nothing: this program keeps no log.
func Read(string, Query, func(*Request) error) (struct{}, error) { return struct{}{}, nil }
