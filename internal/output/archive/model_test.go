package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/amble-crawler/amble/internal/testing/must"
)

// TestModel runs random batches, failed commits, crashes and clean shutdowns against a list of
// lines, while complete files are moved away.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(t, rt)
		steps := m.steps()
		steps["take away"] = func(*rapid.T) { m.takeAway() }
		rt.Repeat(steps)
		m.end()
		m.check(rt)
	})
}

// TestModelOfOlderCopies does the same while an older copy of the database is put back
// occasionally. No complete file is ever changed or lost.
func TestModelOfOlderCopies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(t, rt)
		steps := m.steps()
		steps["back up"] = func(*rapid.T) {
			m.copies = append(m.copies, snapshot{slices.Clone(m.marks), slices.Clone(m.committed)})
		}
		steps["put back"] = func(rt *rapid.T) {
			if len(m.copies) == 0 {
				rt.Skip("no copy")
			}
			if rapid.Bool().Draw(rt, "in order") {
				m.end()
			} else {
				m.w.Close()
			}
			m.noteComplete(rt)
			i := rapid.IntRange(0, len(m.copies)-1).Draw(rt, "copy")
			c := m.copies[i]
			m.copies = m.copies[:i+1] // the others know of files that are set aside now
			m.marks, m.committed = slices.Clone(c.marks), slices.Clone(c.committed)
			m.open()
			m.noteComplete(rt)
		}
		rt.Repeat(steps)
		m.end()
		m.check(rt)
		m.noteComplete(rt)
	})
}

type snapshot struct {
	marks     []Mark
	committed []string
}

type model struct {
	t         *testing.T
	o         Options
	w         *Writer
	synced    []Mark
	marks     []Mark   // committed
	committed []string // the lines before them
	pending   []string // appended since
	dirty     bool     // the files may hold more than what was committed
	count     int
	copies    []snapshot
	complete  map[string]string // content of files that were complete, by name and content
}

func newModel(t *testing.T, rt *rapid.T) *model {
	dir := must.Get(os.MkdirTemp(t.TempDir(), ""))(t)
	o := DefaultOptions()
	o.Dir = dir
	o.MaxFileBytes = rapid.Int64Range(1, 200).Draw(rt, "max file")
	o.MaxFileAge = time.Hour
	m := &model{t: t, o: o, complete: make(map[string]string)}
	m.append(5)
	m.sync()
	m.commit()
	return m
}

func (m *model) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"append": func(rt *rapid.T) {
			for range rapid.IntRange(1, 10).Draw(rt, "lines") {
				m.append(rapid.IntRange(0, 60).Draw(rt, "length"))
			}
		},
		"commit":          func(*rapid.T) { m.sync(); m.commit() },
		"commit fails":    func(*rapid.T) { m.sync(); m.rollback() },
		"crash":           func(*rapid.T) { m.w.Close(); m.open() },
		"crash on commit": func(*rapid.T) { m.sync(); m.w.Close(); m.open() },
		// the commit had succeeded
		"in doubt":     func(*rapid.T) { m.sync(); m.markCommitted(); m.w.Close(); m.open() },
		"end":          func(*rapid.T) { m.end(); m.open() },
		"crash at end": func(*rapid.T) { m.finish(); m.w.Close(); m.open() },
		"age":          func(*rapid.T) { m.expire() },
		"":             func(rt *rapid.T) { m.check(rt) },
	}
}

func (m *model) check(rt *rapid.T) {
	if got := output(m.t, m.o.Dir); !m.dirty && !slices.Equal(got, m.committed) {
		rt.Fatalf("output is %q\nwant %q", got, m.committed)
	}
}

// noteComplete records complete files, and checks that those it knows are unchanged, under their
// name or set aside.
func (m *model) noteComplete(rt *rapid.T) {
	now := make(map[string]bool)
	for _, file := range names(m.t, m.o.Dir) {
		_, name, suffix, ok := pageNames.Parse(file)
		if !ok || suffix == SuffixOpen {
			continue
		}
		text := must.Get(os.ReadFile(filepath.Join(m.o.Dir, file)))(m.t)
		now[name+"\n"+string(text)] = true
		if suffix == "" {
			m.complete[name+"\n"+string(text)] = string(text)
		}
	}
	for file := range m.complete {
		if !now[file] {
			rt.Fatalf("a complete file is not as it was: %q; there are %q", file, names(m.t, m.o.Dir))
		}
	}
}

// takeAway moves complete files out of the directory, as a reader of the output may.
func (m *model) takeAway() {
	for _, file := range names(m.t, m.o.Dir) {
		if _, _, suffix, ok := pageNames.Parse(file); !ok || suffix != "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.o.Dir, file))
		if err == nil {
			err = os.Remove(filepath.Join(m.o.Dir, file))
		}
		must.Do(m.t, err)
		for l := range strings.Lines(string(text)) {
			i := slices.Index(m.committed, strings.TrimSuffix(l, "\n"))
			must.True(m.t, i >= 0, "%s has %q, which is not committed", file, l)
			m.committed = slices.Delete(m.committed, i, i+1)
		}
	}
	clear(m.complete)
}

func (m *model) open() {
	w := must.Get(OpenOn(m.o, m.marks, noSync{}))(m.t)
	m.w, m.pending, m.dirty = w, nil, false
}

func (m *model) append(length int) {
	if m.w == nil {
		m.open()
	}
	m.count++
	l := fmt.Sprintf("%d %0*d", m.count, length, 0)
	mustAppend(m.t, m.w, l)
	m.pending = append(m.pending, l)
	m.dirty = true
}

func (m *model) sync() { m.synced = mustSync(m.t, m.w) }

func (m *model) markCommitted() {
	m.marks = m.synced
	m.committed = append(m.committed, m.pending...)
	m.pending, m.dirty = nil, false
}

func (m *model) commit() {
	m.markCommitted()
	must.Do(m.t, m.w.Committed())
}

func (m *model) rollback() {
	must.Do(m.t, m.w.Rollback(m.marks))
	m.pending, m.dirty = nil, false
}

// expire advances the time by a day. A file with uncommitted records stays open.
func (m *model) expire() {
	for _, hours := range []time.Duration{1, 24} { // a file that was gone on with counts from the first look
		marks, err := m.w.Expire(time.Now().Add(hours * time.Hour))
		if marks != nil {
			m.marks = marks
		}
		if err == nil {
			err = m.w.Committed()
		}
		must.Do(m.t, err)
	}
	if m.dirty {
		return
	}
	for _, name := range names(m.t, m.o.Dir) {
		must.True(m.t, !strings.HasSuffix(name, SuffixOpen), "%s is a day old", name)
	}
}

// finish completes the files, and commits that.
func (m *model) finish() {
	marks := must.Get(m.w.Finish())(m.t)
	if marks != nil {
		m.marks = marks
	}
	m.pending, m.dirty = nil, false
}

func (m *model) end() {
	m.finish()
	must.Do(m.t, m.w.Committed())
	m.w.Close()
}

// noSync is a disk that never syncs, since the test has no power cut.
type noSync struct{ OSDisk }

func (noSync) SyncDir(string) error { return nil }

func (d noSync) Create(path string) (File, error) { return unsynced(d.OSDisk.Create(path)) }

func (d noSync) Reopen(path string) (File, error) { return unsynced(d.OSDisk.Reopen(path)) }

type unsyncedFile struct{ File }

func (unsyncedFile) Sync() error { return nil }

func unsynced(f File, err error) (File, error) { return unsyncedFile{f}, err }
