//go:build !core

package shards

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/storage"
)

// union joins the databases of the shards of a cluster to that of a crawl of one machine. It must not be used
// concurrently.
type union struct {
	stores    []*storage.Store
	divisions []*storage.Division
	whole     *storage.Union
}

// add opens the database of a shard in a directory, and brings it up to the end of its log, unless j is nil:
// then nobody has ever owned the shard. Hosts that owns does not name are left out. It returns the sequence up
// to which the database has the URLs of other shards.
func (u *union) add(ctx context.Context, dir string, j crawl.Journal, owns func(host string) bool) (incoming uint64,
	err error) {
	s, err := storage.Open(dir, storage.Options{NoSync: true})
	if err != nil {
		return 0, err
	}
	u.stores = append(u.stores, s)
	if j != nil {
		if err := crawl.Replay(s, j); err != nil {
			return 0, fmt.Errorf("bring the database up to its log: %w", err)
		}
	}
	d, err := s.Divide(ctx, 2, func(host string) int {
		if owns(host) {
			return 0
		}
		return 1
	})
	if err != nil {
		return 0, err
	}
	u.divisions = append(u.divisions, d)
	encoded, err := s.Mark(marks.Incoming)
	if err == nil {
		incoming, err = storage.DecodeOffset(encoded)
	}
	return incoming, err
}

// close closes the databases of the shards.
func (u *union) close() (err error) {
	for _, s := range u.stores {
		err = errors.Join(err, s.Close())
	}
	u.stores = nil
	return err
}

// ErrSweeping says that the databases of the shards cannot be joined now.
var ErrSweeping = errors.New("a deletion of URLs is under way in some shards: start the nodes, which carry it out, " +
	"and stop them again")

// write writes the database of the whole into the directory o.DataDir, which has none. Any host may have had a
// request just before, so all of them have a restart hold. The error may be ErrSweeping.
func (u *union) write(ctx context.Context, o crawl.Options, paused bool, optOuts []optout.Entry) error {
	u.whole = storage.NewUnion(u.divisions)
	joined, err := u.marks()
	if err != nil {
		return fmt.Errorf("join the marks of shards: %w", err)
	}
	now := o.Time()
	if joined[marks.Held], err = now.MarshalBinary(); err != nil {
		return err
	}
	if delete(joined, marks.Paused); paused {
		joined[marks.Paused] = joined[marks.Held]
	}
	for i := range optOuts {
		e := &optOuts[i]
		if joined[marks.OptOut(e.Scope, e.Value)], err = json.Marshal(e); err != nil {
			return err
		}
		joined[sweep.MarkExclude] = []byte(storage.Position{}.String())
	}
	_, err = u.whole.Write(ctx, filepath.Join(o.DataDir, storage.FileName), u.stores[0].Path(), joined)
	return err
}

// marks joins the marks of all.
func (u *union) marks() (map[string][]byte, error) {
	all := make(map[string][]byte)
	var retries []sweep.Command
	var sums marks.Totals
	for n, s := range u.stores {
		found, err := s.Marks("")
		if err != nil {
			return nil, err
		}
		if value := found[marks.Deaths]; len(all[marks.Deaths])+len(value) <= marks.MaxDeaths && value != nil {
			all[marks.Deaths] = append(all[marks.Deaths], value...)
		}
		more, err := marks.DecodeTotals(found[marks.Sums])
		if err != nil {
			return nil, err
		}
		sums.Add(&more)
		for name, value := range found {
			if strings.HasPrefix(name, sweep.MarkRetry) {
				var c sweep.Command
				if err := json.Unmarshal(value, &c); err != nil {
					return nil, fmt.Errorf("mark %s: %w: %w", name, storage.ErrCorrupt, err)
				}
				retries = u.addRetry(retries, n, c)
				continue
			}
			if name, value, err = u.mark(n, name, value); err != nil {
				return nil, err
			}
			before, known := all[name]
			if strings.HasPrefix(name, frontier.MarkSeedPages) && cmp.Or(cmp.Compare(len(before), len(value)),
				bytes.Compare(before, value)) < 0 { // the greatest count
				known = false
			}
			if name != "" && !known {
				all[name] = value
			}
		}
	}
	for i := range retries {
		all[sweep.RetryMark(uint64(i+1))] = retries[i].Encode()
	}
	if !sums.IsZero() {
		all[marks.Sums] = sums.Encode()
	}
	return all, u.mergePlan(all)
}

// mark returns a mark of a shard as it is in the whole; without a name it is not there, or is joined
// elsewhere. Sweeps over all hosts begin again: they have come further in some shards than in others.
func (u *union) mark(n int, name string, value []byte) (string, []byte, error) {
	if host, ok := sweep.HostOfMark(name); ok {
		if host, ok = u.whole.Host(n, host); !ok {
			return "", nil, nil
		}
		return sweep.MarkOfHost(name, host), value, nil
	}
	if host, ok := marks.HostOfLimit(name); ok {
		if host, ok = u.whole.Host(n, host); !ok {
			return "", nil, nil
		}
		return marks.OfLimit(host), value, nil
	}
	switch {
	case name == marks.Incoming, name == marks.Held, name == marks.Deaths:
		return "", nil, nil
	case name == sweep.MarkExclude:
		return name, []byte(storage.Position{}.String()), nil
	case strings.HasPrefix(name, sweep.MarkDeleteAll): // begun again it would delete what was found since
		return "", nil, ErrSweeping
	}
	return name, value, nil
}

// addRetry adds a retry of a shard. Those of all shards that have the same cause become one, which begins
// again: what it puts back twice is tried once more.
func (u *union) addRetry(all []sweep.Command, n int, c sweep.Command) []sweep.Command {
	if c.Selection != nil && c.Selection.Host != "" {
		id, ok := u.whole.Host(n, c.Host)
		if c.Host = id; !ok {
			c.Host, c.Ordinal = storage.NoHost, 0
		}
		return append(all, c)
	}
	c.Host, c.Ordinal, c.Back = storage.NoHost, 0, 0
	for i := range all {
		if bytes.Equal(all[i].Encode(), c.Encode()) {
			return all
		}
	}
	return append(all, c)
}

// mergePlan makes the recrawl plan of the whole of its pages, if the shards have one.
func (u *union) mergePlan(joined map[string][]byte) (err error) {
	if len(joined[marks.Plan]) == 0 {
		return nil
	}
	joined[marks.Plan], err = recrawl.Of(joined[marks.Plan], func(add func(recrawl.History, recrawl.Importance)) error {
		for n, d := range u.divisions {
			if err := d.Hosts(0,
				func(id storage.HostID) error { return addPlanned(u.stores[n], id, add) }); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
