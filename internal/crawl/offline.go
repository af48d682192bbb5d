package crawl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/maze"
	"github.com/amble-crawler/amble/internal/recrawl"
	"github.com/amble-crawler/amble/internal/remote"
	"github.com/amble-crawler/amble/internal/sweep"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// offline is the store of a crawl that does not run.
type offline struct {
	store store
	space *diskSpace
	now   func() time.Time
}

func openOffline(o *Options) (*offline, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := openStore(o)
	if err != nil {
		return nil, err
	}
	o.fill()
	return &offline{store: s, space: newDiskSpace(o), now: o.Now}, nil
}

// commit commits if there is enough space on the disk.
func (f *offline) commit(b *storage.Batch) (storage.Result, error) {
	if err := f.space.check(); err != nil {
		return storage.Result{}, err
	}
	result, err := f.store.Commit(b)
	return result, f.space.explain(err)
}

// Close closes the store.
func (f *offline) Close() error { return f.store.Close() }

// Retrier puts URLs of a crawl that does not run back into their queues.
type Retrier struct {
	*offline
	most int // URLs put back in one transaction
}

// OpenRetrier opens the store in o.DataDir, which has to exist. The errors of storage.Open come
// through.
func OpenRetrier(o Options) (*Retrier, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(o.DataDir, storage.FileName)); err != nil {
		return nil, err
	}
	f, err := openOffline(&o)
	if err != nil {
		return nil, err
	}
	return &Retrier{f, sweep.MostChanged}, nil
}

// Retry puts the URLs of a selection back into their queues, in transactions of bounded size, and
// calls each with its progress after every one. When it returns, all that it counts is on disk. A
// process that is killed leaves the rest to the next run; if the context ends, or each returns an
// error, the rest is not done. The errors are those of Engine.Retry; with too little space on the
// disk it is storage.ErrNoSpace.
func (r *Retrier) Retry(
	ctx context.Context, s sweep.Selection, each func(sweep.Retried) error,
) (sweep.Retried, error) {
	w, err := sweep.NewRetry(r.store, sweep.Command{Selection: &s}, nil)
	if err != nil {
		return sweep.Retried{}, err
	}
	w.Limit(r.most)
	last, err := sweep.LastRetry(r.store)
	if err != nil {
		return sweep.Retried{}, err
	}
	mark := sweep.RetryMark(last + 1)
	for end := false; !end; {
		var page []storage.Done
		if page, end, err = w.Walk(ctx, r.store, slog.Default(), r.now()); err != nil {
			break
		}
		if len(page) > 0 {
			w.Add(len(page))
			b := storage.Batch{Done: page, Marks: map[string][]byte{mark: w.Encode()}}
			if _, err = r.commit(&b); err != nil {
				w.Add(-len(page))
				err = fmt.Errorf("put URLs back: %w", err)
				break
			}
		}
		if err = each(w.Progress()); err != nil {
			break
		}
	}
	if w.Progress().Back > 0 {
		_, removed := r.commit(&storage.Batch{Marks: map[string][]byte{mark: nil}})
		if err == nil && removed != nil {
			err = fmt.Errorf("put URLs back: %w", removed)
		}
	}
	return w.Progress(), err
}

// ErasureFile is the name of the file under the data directory that exists while hosts are erased.
// Until the erasure has ended, Open and the functions for a crawl that does not run refuse the
// directory with ErrErasing.
const ErasureFile = "erasing.json"

// ErrErasing says that hosts are being erased, or that this was interrupted.
var ErrErasing = errors.New("an erasure of hosts has not ended")

// openStore opens the store in o.DataDir, unless hosts are being erased there.
func openStore(o *Options) (*storage.Store, error) {
	s, err := storage.Open(o.DataDir, o.Storage)
	if err != nil {
		return nil, err
	}
	if err := checkErasure(o.DataDir); err != nil { // nobody begins one from here on
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkErasure returns ErrErasing while an erasure has not ended.
func checkErasure(dir string) error {
	path := filepath.Join(dir, ErasureFile)
	if _, err := os.Stat(path); err != nil {
		return nil // nor is there one if the directory cannot be read
	}
	return fmt.Errorf("%w: %s is there; amble run goes on with it and then crawls, amble erase --resume goes on "+
		"with it alone", ErrErasing, path)
}

// NewErasure prepares the erasure of hosts from the database of a crawl that does not run. Their
// politeness goes too, so every host has a restart hold from now on: an erased one that is found again
// is left alone for its delay.
func NewErasure(s *storage.Store, names weburl.Names, now time.Time) (*storage.Erasure, error) {
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
	encoded, err := s.Mark(MarkPlan)
	if err != nil || len(encoded) == 0 {
		return nil, err
	}
	return recrawl.Without(encoded, func(remove func(recrawl.History, recrawl.Importance)) error {
		for id := range hosts {
			h, err := s.HostByID(id)
			for at := uint32(0); err == nil && at < h.Tail; {
				at, err = s.URLs(id, at, erasePage, func(u storage.Head) {
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

// erasePage is how many URLs are read in one transaction.
const erasePage = 1000

// markEraser takes hosts out of the marks.
type markEraser struct {
	names weburl.Names
	hosts map[storage.HostID]string
	plan  []byte
	now   time.Time
}

func (m *markEraser) erase(marks map[string][]byte) {
	for name, value := range marks {
		switch {
		case strings.HasPrefix(name, remote.Mark) && m.names.In(value):
			delete(marks, name)
		case name == storage.MarkUncommitted || name == markDeaths:
			if kept := m.lines(value); len(kept) < len(value) {
				marks[name] = kept
			}
		case strings.HasPrefix(name, sweep.MarkRetry) && m.isRetry(value), m.isOfHost(name), m.isTDMFile(name, value),
			m.isMaze(name), m.isQueueMark(name, value):
			delete(marks, name)
		}
	}
	if m.plan != nil {
		marks[MarkPlan] = m.plan
	}
	if held, err := m.now.MarshalBinary(); err == nil && len(m.hosts) > 0 {
		marks[markHeld] = held
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

// isTDMFile reports whether a mark is the TDM file of an erased host or names one. It is fetched
// again with the robots.txt of its origin.
func (m *markEraser) isTDMFile(name string, value []byte) bool {
	origin, is := strings.CutPrefix(name, markTDM)
	return is && (m.names.HasURL(origin+"/") || m.names.In(value))
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
		id, ok = hostOfLimit(name)
	}
	_, erased := m.hosts[id]
	return ok && erased
}

// FinishOutput completes the output files of a crawl that does not run, of all formats that it has
// ever had, so that none of them has bytes that the database does not know of.
func FinishOutput(o Options, s *storage.Store) (err error) {
	if _, err := os.Stat(o.Archive.Dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	encoded, err := s.Mark(storage.MarkOutput)
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
	if len(marks) == 0 {
		return nil
	}
	if _, err := s.Commit(&storage.Batch{Marks: map[string][]byte{storage.MarkOutput: archive.EncodeMarks(marks)}}); err != nil {
		return err
	}
	return w.Committed()
}
