//go:build !core

package warcfiles

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/amble-crawler/amble/internal/web/spool"
)

// mergeAt is how many sorted runs are merged to one.
const mergeAt = 32

// Merger sorts the lines of the indexes of many files. Those of one file are sorted in memory, where their file bounds
// them; the others wait in the spool.
type Merger struct {
	pool *spool.Pool
	runs [][]*spool.Content // sorted lines, by how often they were merged
}

// NewMerger returns a merger whose lines wait in a pool.
func NewMerger(pool *spool.Pool) *Merger { return &Merger{pool: pool} }

// Each calls each for all lines, in order, equal ones once.
func (m *Merger) Each(each func(line []byte) error) error {
	return merge(slices.Concat(m.runs...), each)
}

// Add adds the lines of a file.
func (m *Merger) Add(lines [][]byte) error {
	slices.SortFunc(lines, bytes.Compare)
	w := m.pool.NewWriter(0)
	defer w.Discard()
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return m.push(0, w.Content())
}

// push adds a run, and merges those of its level if they are many.
func (m *Merger) push(level int, run *spool.Content) error {
	if level == len(m.runs) {
		m.runs = append(m.runs, nil)
	}
	m.runs[level] = append(m.runs[level], run)
	if len(m.runs[level]) < mergeAt {
		return nil
	}
	w := m.pool.NewWriter(0)
	defer w.Discard()
	buffered := bufio.NewWriterSize(w, 1<<16)
	err := merge(m.runs[level], func(line []byte) error { _, err := buffered.Write(line); return err })
	if err = errors.Join(err, buffered.Flush()); err != nil {
		return err
	}
	for _, run := range m.runs[level] {
		err = errors.Join(err, run.Close())
	}
	m.runs[level] = nil
	return errors.Join(err, m.push(level+1, w.Content()))
}

// Close frees what waits.
func (m *Merger) Close() {
	for _, run := range slices.Concat(m.runs...) {
		_ = run.Close() // it was read
	}
}

// merge calls each for the lines of sorted runs, in order, each once.
func merge(runs []*spool.Content, each func(line []byte) error) error {
	type source struct {
		lines *bufio.Reader
		line  []byte
	}
	var sources []*source
	next := func(s *source) (err error) {
		if s.line, err = s.lines.ReadBytes('\n'); errors.Is(err, io.EOF) {
			return nil // runs end with a whole line: there is none
		}
		return err
	}
	for _, run := range runs {
		s := &source{lines: bufio.NewReaderSize(run.NewReader(), 1<<14)}
		if err := next(s); err != nil {
			return err
		}
		if len(s.line) > 0 {
			sources = append(sources, s)
		}
	}
	var last []byte
	for len(sources) > 0 {
		least := 0
		for i := range sources {
			if bytes.Compare(sources[i].line, sources[least].line) < 0 {
				least = i
			}
		}
		s := sources[least]
		if !bytes.Equal(s.line, last) {
			if err := each(s.line); err != nil {
				return err
			}
		}
		last = s.line
		if err := next(s); err != nil {
			return err
		}
		if len(s.line) == 0 {
			sources = slices.Delete(sources, least, least+1)
		}
	}
	return nil
}
