package crawl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/recrawl"
	"github.com/amble-crawler/amble/internal/sweep"
	"github.com/amble-crawler/amble/storage"
)

// Union joins the databases of the shards of a cluster to that of a crawl of one machine. It reads only.
type Union struct {
	stores    []*storage.Store
	divisions []*storage.Division
	union     *storage.Union
}

// NewUnion returns the union of databases, without hosts that one has and does not own. They stay the
// caller's.
func NewUnion(ctx context.Context, stores []*storage.Store, owns func(n int, host string) bool) (*Union, error) {
	u := &Union{stores: stores}
	for n, s := range stores {
		d, err := s.Divide(ctx, 2, func(host string) int {
			if owns(n, host) {
				return 0
			}
			return 1
		})
		if err != nil {
			return nil, err
		}
		u.divisions = append(u.divisions, d)
	}
	u.union = storage.NewUnion(u.divisions)
	return u, nil
}

// Write writes the union to a file, with the mode of another. Any host may have had a request just
// before, so all of them have a restart hold. It returns the counters of the whole.
func (u *Union) Write(ctx context.Context, path, like string, o Options) (storage.Counters, error) {
	o.fill()
	marks, err := u.marks()
	if err == nil {
		marks[markHeld], err = o.Now().MarshalBinary()
	}
	if err != nil {
		return storage.Counters{}, fmt.Errorf("join the marks of shards: %w", err)
	}
	return u.union.Write(ctx, path, like, marks)
}

// marks joins the marks of all.
func (u *Union) marks() (map[string][]byte, error) {
	all := make(map[string][]byte)
	var retries []sweep.Command
	for n, s := range u.stores {
		marks, err := s.Marks("")
		if err != nil {
			return nil, err
		}
		if value := marks[markDeaths]; value != nil {
			all[markDeaths] = append(all[markDeaths], value...)
		}
		for name, value := range marks {
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
			if _, known := all[name]; name != "" && !known {
				all[name] = value
			}
		}
	}
	for i := range retries {
		all[sweep.RetryMark(uint64(i+1))] = retries[i].Encode()
	}
	return all, u.joinPlan(all)
}

// mark returns a mark of a shard as it is in the whole; without a name it is not there, or is joined
// elsewhere. Sweeps over all hosts begin again: they have come further in some shards than in others.
func (u *Union) mark(n int, name string, value []byte) (string, []byte, error) {
	if host, ok := sweep.HostOfMark(name); ok {
		id, ok := u.union.Host(n, host)
		if !ok {
			return "", nil, nil
		}
		return sweep.MarkOfHost(name, id), value, nil
	}
	if host, ok := hostOfLimit(name); ok {
		id, ok := u.union.Host(n, host)
		if !ok {
			return "", nil, nil
		}
		return limitMark(id), value, nil
	}
	switch {
	case name == markIncoming, name == markHeld, name == markDeaths:
		return "", nil, nil
	case name == sweep.MarkExclude:
		return name, []byte(storage.Position{}.String()), nil
	case strings.HasPrefix(name, sweep.MarkDeleteAll):
		value, err := remark(value, func(a *sweep.Deletion) bool { a.Host = storage.NoHost; return true })
		return name, value, err
	}
	return name, value, nil
}

// addRetry adds a retry of a shard. Those of all shards that have the same cause become one.
func (u *Union) addRetry(all []sweep.Command, n int, c sweep.Command) []sweep.Command {
	if c.Selection != nil && c.Selection.Host != "" {
		id, ok := u.union.Host(n, c.Host)
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

// joinPlan makes the recrawl plan of the whole of its pages, if the shards have one.
func (u *Union) joinPlan(marks map[string][]byte) (err error) {
	if len(marks[MarkPlan]) == 0 {
		return nil
	}
	marks[MarkPlan], err = recrawl.Of(marks[MarkPlan], func(add func(recrawl.History, recrawl.Importance)) error {
		for n, d := range u.divisions {
			if err := d.Hosts(0, func(id storage.HostID) error { return addPlanned(u.stores[n], id, add) }); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
