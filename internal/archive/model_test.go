package archive

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestModel runs random batches, commits that fail, crashes and ends in order against a list of lines.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		o := DefaultOptions()
		o.Dir = dir
		o.MaxFileBytes = rapid.Int64Range(1, 200).Draw(rt, "max file")
		o.MaxFileAge = time.Hour
		m := &model{t: t, o: o}
		m.open()
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(rt, "lines") {
					m.append(rapid.IntRange(0, 60).Draw(rt, "length"))
				}
			},
			"commit":          func(*rapid.T) { m.sync(); m.commit() },
			"commit fails":    func(*rapid.T) { m.sync(); m.rollback() },
			"crash":           func(*rapid.T) { abandon(m.w); m.open() },
			"crash on commit": func(*rapid.T) { m.sync(); abandon(m.w); m.open() },
			"end":             func(*rapid.T) { m.close(); m.open() },
			"age":             func(*rapid.T) { m.expire() },
			"": func(rt *rapid.T) {
				if !m.dirty && !slices.Equal(output(t, o.Dir), m.committed) {
					rt.Fatalf("output is %q\nwant %q", output(t, o.Dir), m.committed)
				}
			},
		})
		m.close()
		if got := output(t, o.Dir); !slices.Equal(got, m.committed) {
			rt.Fatalf("at the end output is %q\nwant %q", got, m.committed)
		}
	})
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
}

func (m *model) open() {
	w, err := open(m.o, m.marks, &failingDisk{room: 1 << 30})
	if err != nil {
		m.t.Fatal(err)
	}
	m.w, m.pending, m.dirty = w, nil, len(m.marks) == 0
	if m.dirty && len(output(m.t, m.o.Dir)) > 0 {
		m.t.Fatal("lines that were never committed")
	}
}

func (m *model) append(length int) {
	m.count++
	l := fmt.Sprintf("%d %0*d", m.count, length, 0)
	mustAppend(m.t, m.w, l)
	m.pending = append(m.pending, l)
	m.dirty = true
}

func (m *model) sync() { m.synced = mustSync(m.t, m.w) }

func (m *model) commit() {
	m.marks = m.synced
	m.committed = append(m.committed, m.pending...)
	m.pending, m.dirty = nil, false
}

func (m *model) rollback() {
	if len(m.marks) == 0 && len(m.synced) == 0 {
		return
	}
	if err := m.w.Rollback(m.marks); err != nil {
		m.t.Fatal(err)
	}
	m.pending, m.dirty = nil, false
}

// expire lets a day go by. What is not committed keeps its file open.
func (m *model) expire() {
	for _, hours := range []time.Duration{1, 24} { // a file that was gone on with counts from the first look
		if err := m.w.Expire(time.Now().Add(hours * time.Hour)); err != nil {
			m.t.Fatal(err)
		}
	}
	if m.dirty {
		return
	}
	for _, name := range names(m.t, m.o.Dir) {
		if strings.HasSuffix(name, suffixOpen) {
			m.t.Fatalf("%s is a day old", name)
		}
	}
}

func (m *model) close() {
	if err := m.w.Close(); err != nil {
		m.t.Fatal(err)
	}
	m.pending, m.dirty = nil, false
}
