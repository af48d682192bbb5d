//go:build !core

// Package mirror writes the stored pages of an archive as files whose links lead to each other, so that a browser
// opens them from disk.
//
// The name of a file is a function of its URL and of its media type, and no two URLs have one name, on any file system:
// none distinguishes by letter case alone, is reserved on Windows, ends in a dot or is too long, and no file has the
// name of a directory. Everything is written below one fresh directory, through os.Root.
package mirror
