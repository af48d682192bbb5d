package storage

import (
	"context"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Union makes one database of the hosts of several: those of part 0 of a division of each. No host is in
// two of them.
type Union struct {
	from  []*Division
	below []HostID // hosts of the databases before
}

// NewUnion returns the union of part 0 of divisions. There is at least one.
func NewUnion(from []*Division) *Union {
	u := &Union{from: from}
	hosts := NoHost
	for _, d := range from {
		u.below = append(u.below, hosts)
		hosts += d.size[0]
	}
	return u
}

// Host returns the id in the union of a host of one of the databases; ok is false if it is not in it.
func (u *Union) Host(from int, host HostID) (id HostID, ok bool) {
	part, id, ok := u.from[from].Locate(host)
	return u.below[from] + id, ok && part == 0
}

// Write writes the union to a new file, with the mode of another. It is durable then. Marks that
// describe files of a data directory are left out, and so is that of a log.
func (u *Union) Write(ctx context.Context, path, like string, marks map[string][]byte) (Counters, error) {
	var all []*rowCopy
	for i, d := range u.from {
		c := d.copyOf(ctx, 0)
		c.newID = func(host HostID) HostID {
			if id, ok := u.Host(i, host); ok {
				return id
			}
			return NoHost
		}
		all = append(all, c)
	}
	err := writeDatabase(path, like, func(to *bolt.DB) error {
		return writeCopies(to, &u.from[0].store.key, copiedMarks(marks), all...)
	})
	if err != nil {
		return Counters{}, fmt.Errorf("write %s: %w", path, spaceError(err))
	}
	var sum Counters
	for _, c := range all {
		sum.Add(c.counters)
	}
	return sum, nil
}
