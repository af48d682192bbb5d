//go:build !core

package shards

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// oldDatabases removes the databases of shards that this node owned once and others own for long: they
// take disk and get older. Output files and request logs stay, since they are nowhere else, and so does a
// database with requests that the request log does not have yet. If the shard comes back, its database
// is made of a snapshot and the log.
type oldDatabases struct {
	engines *engines
	member  *membership.Node
	since   map[cluster.Shard]time.Duration // uptime at which another owner was seen first
}

// run looks for such databases until the context ends.
func (l *oldDatabases) run(ctx context.Context) {
	o := l.engines.o
	ticker := time.NewTicker(o.KeepDatabases / 10)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := l.remove(l.member.Status(), o.Uptime()); err != nil {
			l.engines.log.Warn("a database of a shard that another node owns cannot be removed; it is tried again",
				"error", err)
		}
	}
}

// remove removes what another node has owned for so long, as far as this node knows. What it knows
// counts only while it is trusted.
func (l *oldDatabases) remove(s membership.Status, now time.Duration) (err error) {
	for i := range s.Shards {
		shard, owner := cluster.Shard(i), s.Shards[i].Owner
		if s.Trust == 0 || owner == "" || owner == s.Node {
			delete(l.since, shard)
			continue
		}
		first, known := l.since[shard]
		if !known {
			first, l.since[shard] = now, now
		}
		if now-first >= l.engines.o.KeepDatabases {
			err = errors.Join(err, l.engines.removeDatabase(shard))
		}
	}
	return err
}

// removeDatabase removes the database of a shard whose engine is not open, and the start ledger that
// belongs to it.
func (e *engines) removeDatabase(s cluster.Shard) error {
	e.removing.Lock()
	defer e.removing.Unlock()
	dir := e.o.directory(s)
	database := filepath.Join(dir, storage.FileName)
	if e.isOpen(s) {
		return nil
	}
	if err := storage.RemoveLeftovers(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what is left of the database of shard %d: %w", s, err)
	}
	if _, err := os.Stat(database); err != nil {
		return nil
	}
	uncommitted, err := crawl.HasUncommitted(dir)
	if err == nil && !uncommitted {
		if err = os.Remove(filepath.Join(dir, starts.FileName)); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = os.Remove(database)
		}
		e.log.Info("another node has owned the shard for long, so its database on this node is removed", "shard", s)
	}
	if err != nil {
		return fmt.Errorf("remove the database of shard %d: %w", s, err)
	}
	return nil
}

// isOpen reports whether the engine of a shard is open or about to open.
func (e *engines) isOpen(s cluster.Shard) bool { return slices.Contains(e.opened(), s) }

// opened returns the shards whose engines are open or about to open.
func (e *engines) opened() (all []cluster.Shard) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for h := range e.open {
		all = append(all, h.Shard())
	}
	return all
}

// waitForRemoval waits until no database is being removed: its removal may have begun before the engine of the
// shard was about to open.
func (e *engines) waitForRemoval() {
	e.removing.Lock()
	defer e.removing.Unlock()
}
