//go:build !core

package shards

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/amble-crawler/amble/internal/system"
)

// A node whose disk is full can commit nothing: its shards would stand still for as long as it keeps them. So it
// hands them over, and takes shards again when there is room.
const (
	fullAfter = time.Minute     // a disk that is full for less is one that somebody makes room on
	lookAgain = 5 * time.Second // from one look at it to the next
	leastFree = 4 << 20         // bytes below which a disk is full, whatever the settings say
)

// suspender drains a node for a while: *membership.Node.
type suspender interface {
	Suspend(why string)
	Resume()
}

// diskWatch suspends a node while its disk is full. One goroutine uses it.
type diskWatch struct {
	node  suspender
	log   *slog.Logger
	dirs  []string
	least uint64 // bytes that have to be free
	free  func(dir string) (uint64, error)

	since     time.Time // it is full; zero: it is not
	suspended bool
}

func newDiskWatch(n suspender, o *Options, log *slog.Logger) *diskWatch {
	return &diskWatch{
		node: n, log: log, dirs: []string{o.Crawl.DataDir, o.Crawl.Archive.Dir}, least: max(o.Crawl.MinFree, leastFree),
		free: system.FreeBytes,
	}
}

// run looks at the disk until the context ends.
func (d *diskWatch) run(ctx context.Context) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-tick.C:
			d.look(at)
		}
	}
}

// look suspends the node if its disk has been full for fullAfter, and resumes it when twice the room is there that
// has to be: shards that come back take some.
func (d *diskWatch) look(now time.Time) {
	dir, free := d.fullest()
	switch {
	case !d.suspended && free >= d.least:
		d.since = time.Time{}
	case d.since.IsZero():
		d.since = now
	case !d.suspended && now.Sub(d.since) >= fullAfter:
		d.suspended = true
		why := fmt.Sprintf("its disk is full: %s has %d MiB free, and %d MiB must stay free (storage.min_free)", dir,
			free>>20, d.least>>20)
		d.log.Warn("this node hands over its shards until there is room: "+why, "dir", dir, "free_bytes", free)
		d.node.Suspend(why)
	case d.suspended && free >= 2*d.least:
		d.suspended, d.since = false, time.Time{}
		d.log.Info("there is room on the disk again: this node takes shards", "dir", dir, "free_bytes", free)
		d.node.Resume()
	}
}

// fullest returns the directory with the least room. A disk that cannot be examined has room.
func (d *diskWatch) fullest() (dir string, free uint64) {
	free = 1 << 62
	for _, each := range d.dirs {
		if n, err := d.free(each); err == nil && n < free {
			dir, free = each, n
		}
	}
	return dir, free
}
