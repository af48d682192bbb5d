//go:build !core

package erase

import (
	"context"
	"errors"

	"github.com/amble-crawler/amble/internal/output/archive"
)

// Files are the files of an output directory that no process writes, from which records of hosts are erased.
type Files interface {
	// Recover puts in order what an interrupted Erase has left.
	Recover() error
	// Files returns the names of all files that may hold records.
	Files() ([]string, error)
	// Count counts what Erase would remove from a file. The error wraps archive.ErrUnreadable if it is damaged.
	Count(ctx context.Context, file string) (archive.ErasedFile, error)
	// Erase removes records from a file, and calls commit before it replaces the file. A file without such records
	// stays as it is, and commit is not called.
	Erase(ctx context.Context, file string, commit func(archive.ErasedFile) error) error
}

// output erases from the files of the output. One that is damaged stays, and the report says so.
func (w *work) output(ctx context.Context) error {
	if w.j.Output == "" || !isDir(w.j.Output) {
		return nil
	}
	w.o.Step("erasing from the output in " + w.j.Output)
	e := w.o.Files(w.j.Output, w.o.Crawl.Archive.Known, w.j.names())
	if !w.o.DryRun {
		if err := e.Recover(); err != nil {
			return err
		}
	}
	files, err := e.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := w.outputFile(ctx, e, file); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) outputFile(ctx context.Context, e Files, file string) (err error) {
	r := &w.j.Report
	if w.o.DryRun {
		var n archive.ErasedFile
		if n, err = e.Count(ctx, file); err == nil && len(n.Records) > 0 {
			r.Output[file] = n
		}
	} else {
		err = e.Erase(ctx, file, func(n archive.ErasedFile) error {
			r.Output[file] = n
			return w.j.save()
		})
	}
	if errors.Is(err, archive.ErrUnreadable) {
		r.Unreadable[file] = err.Error()
		return nil
	}
	return err
}
