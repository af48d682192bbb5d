//go:build !core

package archive

// Complete returns the name of a file when it is complete: without a suffix.
func Complete(file string) string { return file[:anySuffix.FindStringIndex(file)[0]] }
