//go:build !core

package erase

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// Options say what is erased, and from where.
type Options struct {
	Crawl  crawl.Options            // of the crawl that has the data directory and the output
	Others map[string]crawl.Options // of the other crawls of its process, by their ids
	Names  weburl.Names
	Output bool // from the output too
	DryRun bool // only count
	Now    func() time.Time
	// Logged: the database may be that of a shard of a cluster, whose log the caller replaces. Else the error is
	// storage.ErrLogged, and nothing has begun.
	Logged bool
	// NoDatabase: there is no database, as of a shard that other nodes crawl.
	NoDatabase bool
	// Files returns the files of an output directory. Required with Output, and for Resume.
	Files func(dir string, known []archive.Format, names weburl.Names) Files
	// Step is called with what happens next, for people. Nil: nobody wants to know.
	Step func(string)
}

// ErrPending says that another erasure has not ended.
var ErrPending = errors.New("another erasure has not ended")

// Run erases hosts from a data directory that no process uses; else the error is storage.ErrInUse. If
// an erasure of the same names was interrupted, Run goes on with it; one of other names is ErrPending.
// An error after the start leaves an erasure that Resume ends.
func Run(ctx context.Context, o Options) (*Report, error) {
	pending, err := openJournal(o.Crawl.DataDir)
	if err != nil {
		return nil, err
	}
	if pending != nil && (pending.names() != o.Names || o.DryRun) {
		return nil, fmt.Errorf("%w, that of %s: end it with amble erase --resume", ErrPending, pending.Report.Name)
	}
	w, err := open(o)
	if err != nil {
		return nil, err
	}
	j := pending
	if j == nil {
		j = &journal{Version: journalVersion, ID: rand.Text(), dir: o.Crawl.DataDir}
		j.Report = Report{Name: o.Names.Name, Below: o.Names.Below, At: o.Now().UTC(), DryRun: o.DryRun}
		j.Report.fill()
	}
	if o.Output && isDir(o.Crawl.Archive.Dir) {
		j.Output = o.Crawl.Archive.Dir
	}
	w.j = j
	return w.end(ctx)
}

// Resume ends an erasure that was interrupted. It returns nil if there is none.
func Resume(ctx context.Context, o Options) (*Report, error) {
	j, err := openJournal(o.Crawl.DataDir)
	if j == nil || err != nil {
		return nil, err
	}
	o.DryRun, o.Names = false, j.names()
	w, err := open(o)
	if err != nil {
		return nil, err
	}
	if j, err = openJournal(o.Crawl.DataDir); j == nil || err != nil { // now that nobody else ends it
		return nil, errors.Join(err, w.close())
	}
	if w.j = j; j.Output != "" {
		w.o.Crawl.Archive.Dir = j.Output
	}
	return w.end(ctx)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// work is an erasure under way.
type work struct {
	o     Options
	j     *journal
	store *storage.Store // nil: Options.NoDatabase
}

// open opens the database, which has to exist, and takes its lock.
func open(o Options) (*work, error) {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.NoDatabase {
		return &work{o: o}, nil
	}
	if _, err := os.Stat(filepath.Join(o.Crawl.DataDir, storage.FileName)); err != nil {
		return nil, err
	}
	s, err := storage.Open(o.Crawl.DataDir, o.Crawl.Storage)
	if err != nil {
		return nil, err
	}
	if s.IsLogged() && !o.Logged {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.Path(), storage.ErrLogged), s.Close())
	}
	return &work{o: o, store: s}, nil
}

// end does all steps and closes the database.
func (w *work) end(ctx context.Context) (*Report, error) {
	err := w.steps(ctx)
	return &w.j.Report, errors.Join(err, w.close())
}

func (w *work) close() error {
	if w.store == nil {
		return nil
	}
	return w.store.Close()
}

func (w *work) steps(ctx context.Context) error {
	if w.o.DryRun {
		return w.each(ctx, w.others, w.output, w.requests, w.crashes, w.ledger, w.database)
	}
	if err := w.j.save(); err != nil {
		return err
	}
	return w.each(ctx, w.others, w.temporaryFiles, w.finishOutput, w.output, w.requests, w.crashes, w.spool, w.ledger,
		w.database, w.backup, w.tombstones, w.mentions, func(context.Context) error { return w.j.remove() })
}

func (w *work) each(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// others erases from the other crawls. An erasure that is interrupted goes through all of them again.
func (w *work) others(ctx context.Context) error {
	for _, id := range slices.Sorted(maps.Keys(w.o.Others)) {
		o := w.o
		o.Crawl, o.Others, o.Names, o.Output = w.o.Others[id], nil, w.j.names(), w.j.Output != ""
		if _, err := os.Stat(filepath.Join(o.Crawl.DataDir, storage.FileName)); errors.Is(err, fs.ErrNotExist) {
			continue // it was never opened
		}
		w.o.Step("erasing from crawl " + strconv.Quote(id))
		r, err := Run(ctx, o)
		if err != nil {
			return fmt.Errorf("crawl %q: %w", id, err)
		}
		if r.IsEmpty() && len(r.Unreadable) == 0 {
			continue
		}
		if w.j.Report.Crawls == nil {
			w.j.Report.Crawls = make(map[string]*Report)
		}
		if w.j.Report.Crawls[id] = r; w.o.DryRun {
			continue
		}
		if err := w.j.save(); err != nil {
			return err
		}
	}
	return nil
}

// backup removes the second copy of the database: the crawl makes the next one when it runs.
func (w *work) backup(context.Context) error {
	w.o.Step("removing the second copy of the database")
	return os.RemoveAll(filepath.Join(w.o.Crawl.DataDir, crawl.BackupDir))
}

// temporaryFiles removes files that no process will ever read, because the one that made them has ended.
func (w *work) temporaryFiles(context.Context) error {
	if err := storage.RemoveLeftovers(w.j.dir); err != nil {
		return err
	}
	for _, name := range []string{starts.FileName + ".new", starts.FileName + ".erase"} {
		if err := os.Remove(filepath.Join(w.j.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// finishOutput completes the files of the output. The database knows their lengths until then. Without a database, the
// files that were being written are set aside.
func (w *work) finishOutput(context.Context) error {
	if w.j.Output == "" {
		return nil
	}
	return finishOutput(w.o.Crawl, w.store)
}

func (w *work) requests(context.Context) error {
	w.o.Step("erasing from the request log")
	r := &w.j.Report
	dir := filepath.Join(w.j.dir, requestlog.DirName)
	return requestlog.Erase(dir, w.j.names(), w.o.DryRun, func(file string, n requestlog.Erased) error {
		r.Requests[file] = n
		if w.o.DryRun {
			return nil
		}
		return w.j.save()
	})
}

// crashes removes the crash files that name an erased host.
func (w *work) crashes(context.Context) error {
	dir := filepath.Join(w.j.dir, crawl.CrashDir)
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("erase crash files: %w", err)
	}
	var found []string
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("erase crash files: %w", err)
		}
		if w.j.names().In(text) {
			found = append(found, path)
		}
	}
	w.j.Report.Crashes = max(w.j.Report.Crashes, len(found))
	if w.o.DryRun || len(found) == 0 {
		return nil
	}
	if err := w.j.save(); err != nil {
		return err
	}
	for _, path := range found {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("erase crash files: %w", err)
		}
	}
	return system.SyncDir(dir)
}

// spool removes the bodies that a crash has left where a file without a name is not possible.
func (w *work) spool(context.Context) error {
	s := w.o.Crawl.Spool
	if s.Dir == "" {
		s.Dir = filepath.Join(w.j.dir, "spool")
	}
	if !isDir(s.Dir) {
		return nil
	}
	_, err := spool.Open(s)
	return err
}

func (w *work) ledger(context.Context) error {
	if w.store == nil {
		return nil
	}
	mark, err := w.store.Mark(storage.MarkLedger)
	if err != nil {
		return err
	}
	committed, err := storage.DecodeOffset(mark)
	if err != nil {
		return err
	}
	r := &w.j.Report
	return starts.Erase(w.j.dir, committed, w.j.names(), w.o.DryRun, func(lines int) error {
		if r.Ledger = max(r.Ledger, lines); lines == 0 || w.o.DryRun {
			return nil
		}
		return w.j.save()
	})
}

// database erases from the database, unless nothing of the hosts is in it.
func (w *work) database(ctx context.Context) error {
	if w.store == nil {
		return nil
	}
	w.o.Step("erasing from the database")
	r := &w.j.Report
	e, err := newErasure(w.store, w.j.names(), w.o.Now())
	if err != nil {
		return err
	}
	n, err := w.store.Count(ctx, e)
	if err != nil || n == (storage.Erased{}) {
		return err
	}
	if r.Database = n; w.o.DryRun {
		return nil
	}
	e.Logged = w.o.Logged
	return w.store.Erase(ctx, e, func(n storage.Erased) error {
		r.Database = n
		return w.j.save()
	})
}

// mentions looks for the name in the files that are left in the data directory, as they are.
func (w *work) mentions(ctx context.Context) error {
	w.o.Step("looking for what is left of the name")
	return filepath.WalkDir(w.j.dir, func(path string, f fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case f.IsDir() && w.j.isOutput(path):
			return fs.SkipDir
		case !f.Type().IsRegular() || strings.HasPrefix(path, journalPath(w.j.dir)):
			return nil
		}
		n, err := countNames(path, w.j.names())
		if n > 0 {
			name, _ := filepath.Rel(w.j.dir, path)
			w.j.Report.Mentions[name] = n
		}
		return err
	})
}

// isOutput reports whether a directory is that of the output, which may be in the data directory.
func (j *journal) isOutput(path string) bool {
	a, err := os.Stat(path)
	b, err2 := os.Stat(j.Output)
	return err == nil && err2 == nil && os.SameFile(a, b)
}
