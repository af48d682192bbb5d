package hostsort

import (
	"container/heap"
	"errors"
	"fmt"
	"io"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Sorted is the records of a sorter, host by host. It belongs to the goroutine of the sorter.
type Sorted struct {
	open cursors // those with a host, the first in order on top
	host string  // of the top
	left int     // records
}

// Sorted returns the records in order. The sorter takes no more of them until Reset.
func (s *Sorter) Sorted() (*Sorted, error) {
	sources := make([]source, 0, len(s.runs)+1)
	for _, run := range s.runs {
		sources = append(sources, newRunReader(run.NewReader()))
	}
	sources = append(sources, &memorySource{sorter: s, groups: s.sorted()})
	m := &Sorted{left: s.count}
	for i, from := range sources {
		c := &cursor{from: from, age: i}
		switch err := c.next(); {
		case err == nil:
			m.open = append(m.open, c)
		case !errors.Is(err, io.EOF):
			return nil, err
		}
	}
	heap.Init(&m.open)
	m.name()
	return m, nil
}

// Next returns the next record and its host. The record is valid until the next call. The error is
// io.EOF behind the last one.
func (m *Sorted) Next() (host string, record []byte, err error) {
	for len(m.open) > 0 && m.open[0].left == 0 {
		switch err := m.open[0].next(); {
		case err == nil:
			heap.Fix(&m.open, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&m.open)
		default:
			return "", nil, err
		}
		m.name()
	}
	if len(m.open) == 0 {
		if m.left != 0 {
			return "", nil, errDamaged
		}
		return "", nil, io.EOF
	}
	top := m.open[0]
	top.left--
	m.left--
	if record, err = top.from.record(); err != nil {
		return "", nil, fmt.Errorf("read a sorted run: %w", err)
	}
	return m.host, record, nil
}

// name sets the host to that of the top.
func (m *Sorted) name() {
	if len(m.open) > 0 {
		m.host = weburl.ReverseHost(m.open[0].host)
	}
}

// cursor is a position in a source.
type cursor struct {
	from source
	age  int    // the records of older sources come first
	host string // reversed
	left int    // records of it
}

// next moves to the next host.
func (c *cursor) next() (err error) {
	if c.host, c.left, err = c.from.next(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read a sorted run: %w", err)
	}
	return err
}

// cursors is a heap by host, then by age.
type cursors []*cursor

func (c cursors) Len() int { return len(c) }

func (c cursors) Less(i, j int) bool {
	return c[i].host < c[j].host || c[i].host == c[j].host && c[i].age < c[j].age
}

func (c cursors) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *cursors) Push(x any) { *c = append(*c, x.(*cursor)) }

// Pop implements heap.Interface.
func (c *cursors) Pop() any {
	old := *c
	last := old[len(old)-1]
	*c = old[:len(old)-1]
	return last
}
