//go:build !core

package requestlog

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"iter"

	"github.com/amble-crawler/amble/robots"
)

// ReadMerged is Read for the logs of one crawl that was moved between machines: each gets the requests of all in the
// order in which they ended, by the clocks of the machines, with the index of their directory. The Summary is that
// of all. The machines need not have run one after the other.
func ReadMerged(dirs []string, q Query, each func(log int, r *Request) error) (Summary, error) {
	clocks := make(map[string]int)
	sources := make([]*source, len(dirs))
	for i, dir := range dirs {
		src := &source{}
		src.next, src.stop = iter.Pull(func(yield func(*Request) bool) {
			src.sum, src.err = read(dir, q, clocks, func(r *Request) error {
				if !yield(r) {
					return errStopped
				}
				return nil
			})
		})
		defer src.stop()
		src.head, src.more = src.next()
		sources[i] = src
	}
	for {
		first := -1
		for i, src := range sources {
			if src.more && (first < 0 || src.head.ends.Wall.Before(sources[first].head.ends.Wall)) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		src := sources[first]
		if err := each(first, src.head); err != nil {
			return Summary{}, err
		}
		src.head, src.more = src.next()
	}
	var all Summary
	var errs []error
	for _, src := range sources {
		all.add(&src.sum)
		errs = append(errs, src.err)
	}
	return all, errors.Join(errs...)
}

// errStopped ends the reading of a log when no more is wanted.
var errStopped = errors.New("no more is wanted")

// source is a log that is merged with others.
type source struct {
	next func() (*Request, bool)
	stop func()
	head *Request // the next one
	more bool     // there is one
	sum  Summary  // at the end
	err  error
}

// add adds the summary of another log.
func (s *Summary) add(other *Summary) {
	s.Files, s.Bytes, s.Requests = s.Files+other.Files, s.Bytes+other.Bytes, s.Requests+other.Requests
	s.Lost, s.Unfinished = s.Lost+other.Lost, s.Unfinished+other.Unfinished
	s.Damaged = append(s.Damaged, other.Damaged...)
}

// unpack is the inverse of robots.Pack, for a body of a known size.
func unpack(packed []byte, size int) ([]byte, bool) {
	if len(packed) == size {
		return packed, true
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(flate.NewReader(bytes.NewReader(packed)), body); err != nil {
		return nil, false
	}
	return body, true
}

// StartedAt returns Start in a form that can be compared with instants of other requests. Read sets
// it.
func (r *Request) StartedAt() Instant { return r.starts }

// EndedAt returns End in a form that can be compared with instants of other requests. If the end is
// unknown, it is the latest possible one: the start of the next process. Read sets it.
func (r *Request) EndedAt() Instant { return r.ends }

// Body returns the unpacked robots.txt; false if the log had no room for it, or there was none.
func (p *Policy) Body() ([]byte, bool) {
	if p.Version == robots.VersionOf(nil) {
		return nil, true // it is known to be empty
	}
	if !p.kept {
		return nil, false
	}
	return unpack(p.Packed, p.size)
}
