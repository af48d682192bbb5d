//go:build !core

package shards

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/maze"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// division divides the database of a crawl of one machine into those of the shards of a cluster. It
// reads only. A division must not be used concurrently.
type division struct {
	store *storage.Store
	parts *storage.Division
	marks map[string][]byte
	hold  func(host string, politeness []byte) ([]byte, error) // see crawl.RestartHolds
}

// openDivision opens the database in o.DataDir, which no process may have open, and divides its hosts
// among so many parts. The errors of storage.Open come through.
func openDivision(ctx context.Context, o crawl.Options, parts int, of func(host string) int) (*division, error) {
	s, err := storage.Open(o.DataDir, storage.Options{ReadOnly: true, MapBytes: o.Storage.MapBytes})
	if err != nil {
		return nil, err
	}
	d := &division{store: s}
	if err := d.open(ctx, o, parts, of); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return d, nil
}

func (d *division) open(ctx context.Context, o crawl.Options, parts int, of func(string) int) error {
	at, err := d.store.LogPosition()
	if err != nil {
		return err
	}
	if at.Number > 0 {
		return fmt.Errorf("%s is that of a shard of a cluster, and not of a whole crawl", d.store.Path())
	}
	if d.marks, err = d.store.Marks(""); err != nil {
		return err
	}
	leases, err := d.store.Marks(remote.Mark)
	if err != nil {
		return err
	}
	if len(leases) > 0 {
		return fmt.Errorf(
			"%s has %d URLs that fetchers outside of amble have leased, and a cluster has no such fetchers: "+
				"run the crawl until they are reported or their deadlines are over", d.store.Path(), len(leases))
	}
	committed, err := storage.DecodeOffset(d.marks[storage.MarkLedger])
	if err != nil {
		return err
	}
	ledger, err := starts.Read(o.DataDir, committed, boot.ID(), nil)
	if err != nil {
		return err
	}
	d.hold = crawl.RestartHolds(o, ledger)
	d.parts, err = d.store.Divide(ctx, parts, of)
	return err
}

// close closes the database.
func (d *division) close() error { return d.store.Close() }

// paused reports whether the operator has paused the crawl.
func (d *division) paused() bool { return len(d.marks[marks.Paused]) > 0 }

// optOuts returns the opt-outs that commands have recorded, in the order of their marks.
func (d *division) optOuts() (all []optout.Entry, err error) {
	commanded, err := crawl.CommandedOptOuts(d.store)
	for _, name := range slices.Sorted(maps.Keys(commanded)) {
		all = append(all, commanded[name])
	}
	return all, err
}

// seeds returns the seeds, and where their redirects led, as the database has them.
func (d *division) seeds() ([]storage.SeedRow, error) { return d.store.Seeds() }

// write writes the database of a part to a file. at is the position in its log that it has. It returns
// the counters of the part.
func (d *division) write(ctx context.Context, path string, part int, at storage.LogPosition) (storage.Counters, error) {
	marks, err := d.partMarks(part)
	if err != nil {
		return storage.Counters{}, fmt.Errorf("divide %s: %w", d.store.Path(), err)
	}
	return d.parts.Write(ctx, path, storage.Part{
		Number: part, Log: at, Marks: marks, Politeness: d.hold,
	})
}

// partMarks returns the marks of a part: what is about a host goes to the part of the host, the walks of
// sweeps go on in all parts, and what is about the whole crawl is in all of them.
func (d *division) partMarks(part int) (map[string][]byte, error) {
	marks := make(map[string][]byte, len(d.marks))
	for name, value := range d.marks {
		name, value, err := d.partMark(part, name, value)
		if err != nil {
			return nil, fmt.Errorf("mark %s: %w", name, err)
		}
		if name != "" {
			marks[name] = value
		}
	}
	return marks, nil
}

// partMark returns a mark as it is in a part; without a name it is not there.
func (d *division) partMark(part int, name string, value []byte) (string, []byte, error) {
	ofHost := func(host storage.HostID, rename func(storage.HostID) string) (string, []byte, error) {
		if p, id, ok := d.parts.Locate(host); ok && p == part {
			return rename(id), value, nil
		}
		return "", nil, nil
	}
	if host, ok := sweep.HostOfMark(name); ok {
		return ofHost(host, func(id storage.HostID) string { return sweep.MarkOfHost(name, id) })
	}
	if host, ok := marks.HostOfLimit(name); ok {
		return ofHost(host, marks.OfLimit)
	}
	var err error
	switch {
	case name == marks.Incoming || name == marks.Held, // of another log; and all hosts of a shard have a restart hold
		strings.HasPrefix(name, marks.OptOuts): // a cluster has one list: see OptOuts
		return "", nil, nil
	case strings.HasPrefix(name, maze.Mark):
		if d.parts.Of(strings.TrimPrefix(name, maze.Mark)) != part {
			return "", nil, nil
		}
	case strings.HasPrefix(name, marks.TDM):
		if d.partOf(strings.TrimPrefix(name, marks.TDM)) != part {
			return "", nil, nil
		}
	case name == marks.Sums: // they are over all parts
		if part > 0 {
			return "", nil, nil
		}
	case name == marks.Deaths:
		if value = d.deathsOf(part, value); len(value) == 0 {
			return "", nil, nil
		}
	case name == sweep.MarkExclude:
		var at storage.Position
		at, err = storage.ParsePosition(string(value))
		value = []byte(d.parts.Position(part, at).String())
	case strings.HasPrefix(name, sweep.MarkDeleteAll):
		value, err = remark(value, func(a *sweep.Deletion) bool {
			a.Host = d.parts.Position(part, storage.Position{Host: a.Host}).Host
			return true
		})
	case strings.HasPrefix(name, sweep.MarkRetry):
		value, err = remark(value, func(c *sweep.Command) bool { return d.retryOf(part, c) })
	case name == marks.Plan:
		value, err = recrawl.Of(value, func(add func(recrawl.History, recrawl.Importance)) error {
			return d.parts.Hosts(part, func(id storage.HostID) error { return addPlanned(d.store, id, add) })
		})
	}
	if value == nil {
		name = ""
	}
	return name, value, err
}

// remark changes what the JSON of a mark holds; nil: the mark goes, since change returns false.
func remark[T any](value []byte, change func(*T) bool) ([]byte, error) {
	var v T
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	if !change(&v) {
		return nil, nil
	}
	return json.Marshal(&v)
}

// retryOf makes a retry that of a part; false: it has no URLs there.
func (d *division) retryOf(part int, c *sweep.Command) bool {
	at := d.parts.Position(part, storage.Position{Host: c.Host, Ordinal: c.Ordinal})
	c.Host, c.Ordinal = at.Host, at.Ordinal
	return c.Selection == nil || c.Selection.Host == "" || d.parts.Of(c.Selection.Host) == part
}

// partOf returns the part of a URL or an origin; -1: it is none.
func (d *division) partOf(url string) int {
	u, err := weburl.Parse(url)
	if err != nil {
		return -1
	}
	return d.parts.Of(u.Host())
}

// deathsOf returns the lines of the mark of deaths that are about URLs of a part.
func (d *division) deathsOf(part int, value []byte) (kept []byte) {
	for line := range bytes.Lines(value) {
		text := strings.TrimSpace(string(line))
		if d.partOf(text[strings.LastIndexByte(text, ' ')+1:]) == part {
			kept = append(kept, line...)
		}
	}
	return kept
}

// planPage is how many URLs are read in one transaction.
const planPage = 1000

// addPlanned calls add for the pages of a host that have a recrawl planned.
func addPlanned(s *storage.Store, host storage.HostID, add func(recrawl.History, recrawl.Importance)) error {
	h, err := s.HostByID(host)
	for at := h.First; err == nil && at < h.Tail; {
		at, err = s.URLs(host, at, planPage, func(u storage.Head) {
			if u.Last.State != storage.Retrying && !u.Last.Due.IsZero() {
				add(u.Last.History, recrawl.ImportanceOf(u.Priority, u.Depth))
			}
		})
	}
	return err
}
