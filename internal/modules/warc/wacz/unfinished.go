//go:build !core

package wacz

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/system"
)

// ErrBusy means that another call makes the package.
var ErrBusy = errors.New("another call makes this package")

// commitEvery is how many bytes of a package are made between two commits, or a little more.
const commitEvery = 64 << 20

// unfinished is the directory of a package that is being made: what there is of it, what waits for its end, and a line
// about each WARC file that is whole in it. It is on disk up to that line, so that a later call goes on from there.
type unfinished struct {
	dir     string
	out     *os.File
	past    *past // between zip and out
	done    *os.File
	pending []byte      // lines for done, of what is not on disk yet
	synced  int64       // how much of the package is
	waiting [3]*waiting // lines of the index, of pages.jsonl and of extraPages.jsonl
}

// taken is a line about a WARC file that is whole in the package.
type taken struct {
	File     string         `json:"file"`
	Size     int64          `json:"size"`
	Changed  time.Time      `json:"changed"`
	Software string         `json:"software"` // by which it was read
	Header   zip.FileHeader `json:"header"`   // of its part
	Part     resource       `json:"part"`
	End      int64          `json:"end"`     // of the part in the package
	Waiting  [3]int64       `json:"waiting"` // how long that is by then
	Report   Report         `json:"report"`
	Home     page           `json:"home"`
}

// waiting are lines in a file.
type waiting struct {
	*bufio.Writer
	f *os.File
	n int64
}

func (w *waiting) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.n += int64(n)
	return n, err
}

// lines returns the lines between two offsets.
func (w *waiting) lines(from, to int64) (all [][]byte, err error) {
	text, err := io.ReadAll(io.NewSectionReader(w.f, from, to-from))
	return slices.Collect(bytes.Lines(text)), err
}

// past drops what has been written to the package before.
type past struct {
	to   *bufio.Writer
	n    int64
	drop bool
}

func (w *past) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	if w.drop {
		return len(p), nil
	}
	return w.to.Write(p)
}

// openUnfinished opens the directory of a package, and makes it if there is none.
func openUnfinished(path string) (u *unfinished, err error) {
	u = &unfinished{dir: path + partial}
	if err := os.MkdirAll(u.dir, 0o750); err != nil {
		return nil, err
	}
	open := func(name string) *os.File {
		f, failed := os.OpenFile(filepath.Join(u.dir, name), os.O_CREATE|os.O_RDWR, 0o640)
		err = errors.Join(err, failed)
		return f
	}
	u.done, u.out = open("taken.jsonl"), open("package")
	for i, name := range []string{"index.cdxj", "pages.jsonl", "extraPages.jsonl"} {
		u.waiting[i] = &waiting{f: open(name)}
	}
	if err == nil {
		var mine bool
		if mine, err = system.Lock(u.done); err == nil && !mine {
			err = ErrBusy
		}
	}
	if err != nil {
		return nil, errors.Join(err, u.close())
	}
	return u, nil
}

// begun returns what the package has of the first WARC files, and cuts off what is behind.
func (u *unfinished) begun(c *warcfiles.Collection, files []warcfiles.File, software string) (all []taken, err error) {
	lines := bufio.NewReader(u.done)
	var end int64
	for i := range files {
		line, err := lines.ReadBytes('\n')
		var t taken
		if err != nil || json.Unmarshal(line, &t) != nil {
			break // it was not written whole
		}
		is, err := u.has(&t, c, files[i], software)
		if err != nil {
			return nil, err
		}
		if !is {
			break
		}
		end += int64(len(line))
		all = append(all, t)
	}
	last := new(taken)
	if len(all) > 0 {
		last = &all[len(all)-1]
	}
	u.synced = last.End
	err = errors.Join(cut(u.done, end), cut(u.out, last.End))
	u.past = &past{to: bufio.NewWriterSize(u.out, 1<<18)}
	for i, w := range u.waiting {
		err = errors.Join(err, cut(w.f, last.Waiting[i]))
		w.Writer, w.n = bufio.NewWriter(w.f), last.Waiting[i]
	}
	return all, err
}

// has reports whether a WARC file is as it was taken, and so is the package.
func (u *unfinished) has(t *taken, c *warcfiles.Collection, f warcfiles.File, software string) (bool, error) {
	opened, err := c.OpenFile(f)
	if err != nil {
		return false, err
	}
	info, err := opened.Stat()
	if err = errors.Join(err, opened.Close()); err != nil {
		return false, err
	}
	is := t.File == f.Name && t.Size == info.Size() && t.Changed.Equal(info.ModTime()) && t.Software == software &&
		t.Part.Bytes >= 0 && t.Part.Bytes <= t.End
	for i, file := range []*os.File{u.waiting[0].f, u.waiting[1].f, u.waiting[2].f, u.out} {
		length := t.End
		if i < len(t.Waiting) {
			length = t.Waiting[i]
		}
		info, err := file.Stat()
		if err != nil {
			return false, err
		}
		is = is && length >= 0 && length <= info.Size()
	}
	return is, nil
}

// cut cuts a file, and goes to its end.
func cut(f *os.File, length int64) error {
	_, err := f.Seek(length, io.SeekStart)
	return errors.Join(err, f.Truncate(length))
}

// takeUp goes on behind what the package has. It is false if this program would have made something else of it.
func (p *packer) takeUp(before []taken) (bool, error) {
	u := p.unfinished
	u.past.drop = true
	var from int64
	for i := range before {
		t := &before[i]
		w, err := p.zip.CreateRaw(&t.Header)
		if err == nil {
			_, err = io.CopyN(w, zeros{}, t.Part.Bytes)
		}
		if err != nil {
			return false, err
		}
		lines, err := u.waiting[0].lines(from, t.Waiting[0])
		if err = errors.Join(err, p.index.Add(lines)); err != nil {
			return false, err
		}
		from = t.Waiting[0]
		p.resources = append(p.resources, t.Part)
	}
	err := p.zip.Flush()
	u.past.drop = false
	n := len(before)
	if err != nil || n == 0 {
		return true, err
	}
	last := &before[n-1]
	if u.past.n != last.End {
		return false, nil
	}
	last.Report.Open, last.Report.Path, last.Report.Before = p.r.Open, p.r.Path, n
	*p.r, p.home = last.Report, last.Home
	return true, nil
}

// took notes that a WARC file is whole in the package.
func (p *packer) took(f warcfiles.File, info os.FileInfo) error {
	u := p.unfinished
	t := taken{File: f.Name, Size: info.Size(), Changed: info.ModTime(), Software: p.o.Software, Header: p.last,
		Part: p.resources[len(p.resources)-1], Report: *p.r, Home: p.home}
	n := uint64(t.Part.Bytes)
	t.Header.CompressedSize64, t.Header.UncompressedSize64 = n, n
	if n >= math.MaxUint32 {
		t.Header.ReaderVersion = 45 // as the package zip sets it when it has written such a part
	}
	t.Home.Text = "" // it is in its list
	err := p.zip.Flush()
	t.End = u.past.n
	for i, w := range u.waiting {
		t.Waiting[i] = w.n
	}
	line, encoding := json.Marshal(&t)
	if err = errors.Join(err, encoding); err != nil {
		return err
	}
	u.pending = append(append(u.pending, line...), '\n')
	if t.End-u.synced < cmp.Or(p.o.every, commitEvery) {
		return nil
	}
	u.synced = t.End
	return u.commit()
}

// commit brings what was taken to disk.
func (u *unfinished) commit() error {
	err := errors.Join(u.past.to.Flush(), u.out.Sync())
	for _, w := range u.waiting {
		err = errors.Join(err, w.Flush(), w.f.Sync())
	}
	if err != nil {
		return err
	}
	_, err = u.done.Write(u.pending)
	u.pending = u.pending[:0]
	return errors.Join(err, u.done.Sync())
}

// finish gives the package its name.
func (u *unfinished) finish(path string) (size int64, err error) {
	err = errors.Join(u.past.to.Flush(), u.out.Sync())
	info, failed := u.out.Stat()
	if err = errors.Join(err, failed, u.out.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(u.out.Name(), path); err != nil {
		return 0, err
	}
	return info.Size(), system.SyncDir(filepath.Dir(path))
}

// close gives up the directory.
func (u *unfinished) close() (err error) {
	files := []*os.File{u.done, u.out}
	for _, w := range u.waiting {
		files = append(files, w.f)
	}
	for _, f := range files {
		if f != nil {
			if failed := f.Close(); !errors.Is(failed, os.ErrClosed) {
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}

// remove removes the directory.
func (u *unfinished) remove() error {
	if err := os.RemoveAll(u.dir); err != nil {
		return fmt.Errorf("remove what waited: %w", err)
	}
	return nil
}

// zeros is a reader of as many as are wanted.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
