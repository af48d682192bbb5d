//go:build !core

package warcfiles

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/records/digest"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// bufferBytes is how many bytes are gathered before they are written, and read at once.
const bufferBytes = 256 << 10

// suffixErase is that of a file which is to replace the one of its name: see Eraser.Erase.
const suffixErase = ".erase"

// Eraser takes the records of hosts out of the files of an output directory that no process writes.
// Those are removed whose own URL is of such a host: pages and their text, links from them, and in
// WARC files also revisit records of other hosts that refer to them. What records of other hosts say
// of an erased one stays: links to it, redirects, and where a page was found.
type Eraser struct {
	dir   string
	known []archive.Format
	names weburl.Names
	disk  archive.Disk
}

// NewEraser returns an eraser for a directory with the files of some formats, this one among them.
func NewEraser(dir string, known []archive.Format, names weburl.Names) *Eraser {
	return &Eraser{dir: dir, known: known, names: names, disk: archive.OSDisk{}}
}

// Files returns the names of all files that may hold records, those that were set aside included, and
// those whose end is not committed.
func (e *Eraser) Files() ([]string, error) {
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	var files []string
	for _, f := range entries {
		if _, _, ok := e.formatOf(f.Name()); ok || e.isOrphan(f.Name()) {
			files = append(files, f.Name())
		}
	}
	return files, nil
}

// isOrphan reports whether a file is the index of a WARC file that was moved away.
func (e *Eraser) isOrphan(file string) bool {
	base, isIndex := strings.CutSuffix(file, indexExtension)
	for _, extension := range []string{".warc.gz", ".warc.zst"} {
		if _, err := e.disk.Size(e.path(base + extension)); !isIndex || err == nil {
			return false
		}
	}
	_, _, _, ours := (format{}).Naming().Parse(base + ".warc.gz")
	return ours
}

// formatOf returns the name of the format of a file, and the file's name without a suffix.
func (e *Eraser) formatOf(file string) (format, name string, ok bool) {
	for _, f := range e.known {
		if _, name, _, ok := f.Naming().Parse(file); ok {
			return f.Name(), name, true
		}
	}
	return "", "", false
}

// Count counts what Erase would remove from a file. The error wraps [archive.ErrUnreadable] if the file is
// damaged.
func (e *Eraser) Count(ctx context.Context, file string) (archive.ErasedFile, error) {
	s, err := e.scan(ctx, file)
	return s.n, err
}

// Erase removes records from a file. It writes a new file, and a new index of a WARC file, reads both
// to their ends, calls commit, and replaces the old ones. A file without such records stays as it is,
// and commit is not called. After kill -9 the file is the old one or the new one; the index of a new
// one may be missing until the next call of Recover. Other records keep all their bytes.
func (e *Eraser) Erase(ctx context.Context, file string, commit func(archive.ErasedFile) error) error {
	if strings.HasSuffix(file, archive.SuffixOpen) {
		return fmt.Errorf("archive: erase from %s: its end is not committed", file)
	}
	s, err := e.scan(ctx, file)
	if err != nil || len(s.n.Records) == 0 {
		return err
	}
	fresh := e.path(file) + suffixErase
	if err := e.rewrite(ctx, s, fresh); err != nil {
		return errors.Join(fmt.Errorf("archive: erase from %s: %w", file, err),
			e.remove(e.indexOf(s)+suffixErase), e.remove(fresh))
	}
	if err := e.disk.SyncDir(e.dir); err != nil {
		return fmt.Errorf("archive: erase from %s: %w", file, err)
	}
	if err := commit(s.n); err != nil {
		return err
	}
	if err := e.replace(s, fresh); err != nil {
		return fmt.Errorf("archive: erase from %s: %w", file, err)
	}
	return nil
}

// replace puts a new file, and its index, in the place of the old ones. Between the two steps there is
// no index: it would be that of another file.
func (e *Eraser) replace(s *eraseScan, fresh string) error {
	index := e.indexOf(s)
	if s.indexed {
		if err := e.remove(index); err != nil {
			return err
		}
	}
	if err := e.disk.Rename(fresh, e.path(s.file)); err != nil {
		return err
	}
	if s.indexed {
		if err := e.disk.Rename(index+suffixErase, index); err != nil {
			return err
		}
	}
	return e.disk.SyncDir(e.dir)
}

// Recover puts in order what an interrupted Erase has left in the directory: it ends the replacement
// of a file that was replaced without its index, and drops what had not replaced anything.
func (e *Eraser) Recover() error {
	names, err := e.disk.List(e.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var files, indexes []string // what was to replace them, without suffixErase
	dropped := make(map[string]bool)
	for _, file := range names {
		old, ok := strings.CutSuffix(file, suffixErase)
		switch {
		case ok && strings.Contains(old, indexExtension):
			indexes = append(indexes, old)
		case ok:
			files = append(files, old)
			dropped[baseOf(archive.Complete(old))] = true
		}
	}
	for _, index := range indexes { // before the file without which it would be taken for a complete one
		if base, _, _ := strings.Cut(index, indexExtension); dropped[base] {
			err = errors.Join(err, e.rebuild(index), e.remove(e.path(index)+suffixErase))
		} else {
			err = errors.Join(err, e.disk.Rename(e.path(index)+suffixErase, e.path(index)))
		}
	}
	for _, file := range files {
		err = errors.Join(err, e.remove(e.path(file)+suffixErase))
	}
	if err == nil {
		err = e.disk.SyncDir(e.dir)
	}
	if err != nil {
		return fmt.Errorf("archive: recover an erasure: %w", err)
	}
	return nil
}

// rebuild makes the index of a file that was not replaced, because its own may be removed already.
func (e *Eraser) rebuild(index string) error {
	base, suffix, _ := strings.Cut(index, indexExtension)
	for _, extension := range []string{".warc.gz", ".warc.zst"} {
		name := base + extension
		if _, err := os.Stat(e.path(name + suffix)); err != nil {
			continue
		}
		fresh := e.path(index) + suffixErase
		return errors.Join(e.writeIndex(name, e.path(name+suffix), fresh), e.disk.Rename(fresh, e.path(index)))
	}
	return nil
}

func (e *Eraser) path(file string) string { return filepath.Join(e.dir, file) }

// indexOf returns the path of the index of a WARC file.
func (e *Eraser) indexOf(s *eraseScan) string {
	return e.path(baseOf(s.name) + indexExtension + strings.TrimPrefix(s.file, s.name))
}

// remove deletes a file that may not be there.
func (e *Eraser) remove(path string) error {
	if err := e.disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// rewrite writes what stays of a file to another one, and its index, and makes both durable.
func (e *Eraser) rewrite(ctx context.Context, s *eraseScan, fresh string) (err error) {
	old, err := os.Open(e.path(s.file))
	if err != nil {
		return err
	}
	defer old.Close()
	before, err := e.disk.Size(e.path(s.file))
	if err != nil {
		return err
	}
	to, err := e.create(fresh)
	if err != nil {
		return err
	}
	if s.kind == Name {
		err = copySpans(to, old, s.kept)
	} else {
		err = e.rewriteLines(ctx, s, old, to, fresh)
	}
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	after, err := e.disk.Size(fresh)
	if s.n.Bytes = before - after; err != nil || !s.indexed {
		return err
	}
	return e.writeIndex(s.name, fresh, e.indexOf(s)+suffixErase)
}

// create makes a file, in the place of one that an interrupted Erase has left.
func (e *Eraser) create(path string) (archive.File, error) {
	if err := e.remove(path); err != nil {
		return nil, err
	}
	return e.disk.Create(path)
}

func copySpans(to io.Writer, from io.ReaderAt, spans []span) error {
	for _, s := range spans {
		if _, err := io.Copy(to, io.NewSectionReader(from, s.from, s.to-s.from)); err != nil {
			return err
		}
	}
	return nil
}

// rewriteLines compresses lines again, as their file was, and reads them back.
func (e *Eraser) rewriteLines(ctx context.Context, s *eraseScan, old io.Reader, to io.Writer, fresh string) error {
	packer, err := archive.PackerOf(s.name)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(to, bufferBytes)
	out := io.Writer(buffer)
	if packer != nil {
		packer.Reset(buffer)
		out = packer
	}
	written := digest.NewHash()
	again := &eraseScan{file: s.file, name: s.name, kind: s.kind, n: archive.ErasedFile{Records: make(map[string]int)}}
	var failed error // to write
	err = e.lines(ctx, again, old, func(line []byte) error {
		written.Write(line)
		_, failed = out.Write(line)
		return failed
	})
	if failed != nil {
		return failed
	}
	if err == nil && packer != nil {
		err = packer.Close()
	}
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		return err
	}
	return e.readsAs(fresh, s.name, digest.Sum(written))
}

// readsAs returns an error unless a file of lines has a content.
func (e *Eraser) readsAs(path, name string, want digest.Digest) error {
	f, err := e.disk.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, release, err := archive.Unpack(f, name)
	if err != nil {
		return err
	}
	defer release()
	read := digest.NewHash()
	if _, err := io.Copy(read, r); err != nil {
		return err
	}
	if digest.Sum(read) != want {
		return errors.New("what was written reads differently")
	}
	return nil
}

// writeIndex writes the index of a WARC file, all of whose records it reads.
func (e *Eraser) writeIndex(name, path, index string) error {
	size, err := e.disk.Size(path)
	if err != nil {
		return err
	}
	lines, err := newIndex(e.disk, e.dir).scan(name, path, nil, 0, size)
	if err != nil {
		return err
	}
	f, err := e.create(index)
	if err != nil {
		return err
	}
	_, err = f.Write(sortedEntries(lines))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
