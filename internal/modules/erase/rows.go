//go:build !core

package erase

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/maze"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// urlPage is how many URLs are read in one transaction.
const urlPage = 1000

// newErasure prepares the erasure of hosts from the database of a crawl that does not run. Their
// politeness goes too, so every host has a restart hold from now on: an erased one that is found again
// is left alone for its delay.
func newErasure(s *storage.Store, names weburl.Names, now time.Time) (*storage.Erasure, error) {
	e, err := s.NewErasure(names)
	if err != nil {
		return nil, err
	}
	m := markEraser{names: names, hosts: e.Hosts, now: now}
	if m.plan, err = planWithout(s, e.Hosts); err != nil {
		return nil, err
	}
	e.Policy, e.History, e.Marks = policyEraser(names), historyEraser(names), m.erase
	return e, nil
}

// policyEraser drops robots records that came from an erased host or name one: they are fetched again
// before the next page of their origin.
func policyEraser(names weburl.Names) func([]byte) []byte {
	return func(encoded []byte) []byte {
		record, err := robots.DecodeRecord(encoded)
		if err != nil || names.HasURL(record.FinalURL) || names.In(record.Body) || names.In([]byte(record.ETag)) {
			return nil
		}
		return encoded
	}
}

// historyEraser drops the earlier versions of a robots.txt that name an erased host.
func historyEraser(names weburl.Names) func([]byte) []byte {
	return func(encoded []byte) []byte {
		history, err := robots.DecodeHistory(encoded)
		if err != nil {
			return nil
		}
		var kept robots.History
		for _, v := range history {
			if !names.In(v.Body) {
				kept = append(kept, v)
			}
		}
		if len(kept) == len(history) {
			return encoded
		}
		if b, err := kept.AppendBinary(nil); err == nil && len(kept) > 0 {
			return b
		}
		return nil
	}
}

// planWithout returns the mark of the recrawl plan without the pages of hosts; nil: there is none.
func planWithout(s *storage.Store, hosts map[storage.HostID]string) ([]byte, error) {
	encoded, err := s.Mark(marks.Plan)
	if err != nil || len(encoded) == 0 {
		return nil, err
	}
	return recrawl.Without(encoded, func(remove func(recrawl.History, recrawl.Importance)) error {
		for id := range hosts {
			h, err := s.HostByID(id)
			for at := uint32(0); err == nil && at < h.Tail; {
				at, err = s.URLs(id, at, urlPage, func(u storage.Head) {
					remove(u.Last.History, recrawl.ImportanceOf(u.Priority, u.Depth))
				})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// markEraser takes hosts out of the marks.
type markEraser struct {
	names weburl.Names
	hosts map[storage.HostID]string
	plan  []byte
	now   time.Time
}

func (m *markEraser) erase(all map[string][]byte) {
	for name, value := range all {
		switch {
		case strings.HasPrefix(name, remote.Mark) && m.names.In(value):
			delete(all, name)
		case name == storage.MarkUncommitted || name == marks.Deaths:
			if kept := m.lines(value); len(kept) < len(value) {
				all[name] = kept
			}
		case strings.HasPrefix(name, sweep.MarkRetry) && m.isRetry(value), m.isOfHost(name), m.isTDMFile(name, value),
			m.isSeed(name), m.isMaze(name), m.isQueueMark(name, value):
			delete(all, name)
		}
	}
	if m.plan != nil {
		all[marks.Plan] = m.plan
	}
	if held, err := m.now.MarshalBinary(); err == nil && len(m.hosts) > 0 {
		all[marks.Held] = held
	}
}

// lines returns the lines that name no erased host.
func (m *markEraser) lines(value []byte) []byte {
	kept := []byte{}
	for line := range bytes.Lines(value) {
		if !m.names.In(line) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// isRetry reports whether a retry selects URLs of an erased host.
func (m *markEraser) isRetry(value []byte) bool {
	var c sweep.Command
	if json.Unmarshal(value, &c) != nil || c.Selection == nil {
		return false
	}
	return m.names.Has(inspect.CanonicalHost(c.Selection.Host)) || m.names.In(value)
}

// isTDMFile reports whether a mark is the TDM file, or are the terms, of an erased host or names one. They are fetched
// again with the robots.txt of their origin.
func (m *markEraser) isTDMFile(name string, value []byte) bool {
	origin, is := strings.CutPrefix(name, marks.TDM)
	return is && (m.names.HasURL(origin+"/") || m.names.In(value))
}

// isSeed reports whether a mark is about a seed of an erased host.
func (m *markEraser) isSeed(name string) bool {
	url, is := strings.CutPrefix(name, frontier.MarkSeedPages)
	return is && m.names.HasURL(url)
}

// isMaze reports whether a mark has the mazes of an erased host.
func (m *markEraser) isMaze(name string) bool {
	of, is := strings.CutPrefix(name, maze.Mark)
	return is && m.names.Has(of)
}

// isOfHost reports whether a mark is about an erased host.
func (m *markEraser) isOfHost(name string) bool {
	id, ok := sweep.HostOfMark(name)
	if !ok {
		id, ok = marks.HostOfLimit(name)
	}
	_, erased := m.hosts[id]
	return ok && erased
}

// finishOutput completes the output files of a crawl that does not run, of all formats that it has
// ever had, so that none of them has bytes that the database does not know of. s is nil if there is no database.
func finishOutput(o crawl.Options, s *storage.Store) (err error) {
	if _, err := os.Stat(o.Archive.Dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var encoded []byte
	if s != nil {
		encoded, err = s.Mark(storage.MarkOutput)
	}
	if err != nil {
		return err
	}
	marks, err := archive.DecodeMarks(encoded)
	if err != nil {
		return err
	}
	o.Archive.Formats = archive.Names(o.Archive.Known)
	w, err := archive.Open(o.Archive, marks)
	if err != nil {
		return err
	}
	defer w.Close()
	if marks, err = w.Finish(); err != nil {
		return err
	}
	if marks == nil {
		marks = w.Marks()
	}
	if len(marks) == 0 || s == nil {
		return nil
	}
	b := storage.Batch{Marks: map[string][]byte{storage.MarkOutput: archive.EncodeMarks(marks)}}
	if _, err := s.Commit(&b); err != nil {
		return err
	}
	return w.Committed()
}

// isQueueMark reports whether a mark is about the queue of a host that is erased, or of a key that names one.
func (m *markEraser) isQueueMark(name string, value []byte) bool {
	if host, is := strings.CutPrefix(name, marks.QueueKey); is {
		return m.names.Has(host) || m.names.In(value)
	}
	rest, is := strings.CutPrefix(name, marks.QueueHost)
	escaped, host, _ := strings.Cut(rest, "/")
	key, err := url.QueryUnescape(escaped)
	return is && (err != nil || m.names.Has(host) || m.names.In([]byte(key)))
}
