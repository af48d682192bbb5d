//go:build !core

package shards

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// eraseLeft erases from the files of shards that this node does not own, until the context ends.
func (e *engines) eraseLeft(ctx context.Context) {
	for e.o.Erase != nil {
		t, moved := e.desired.current()
		for i := range t.Erasures {
			x := &t.Erasures[i]
			if x.Nodes[e.o.Cluster.Node].Done {
				continue
			}
			if err := e.eraseFiles(ctx, &t, x); err != nil && ctx.Err() == nil {
				e.log.Error("a host cannot be erased from the files of this node; it is tried again", "name", x.Name,
					"error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		case <-time.After(e.o.KeepDatabases / 60): // shards come and go
		}
	}
}

// eraseFiles erases from all directories whose engines are not open. It notes when nothing is left to be done.
func (e *engines) eraseFiles(ctx context.Context, t *target, x *Erasure) error {
	dirs, err := os.ReadDir(filepath.Join(e.o.Crawl.DataDir, "shards"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var sum Erased
	var all []cluster.Shard
	for _, d := range dirs {
		n, err := strconv.ParseUint(d.Name(), 10, 31)
		if err != nil || !d.IsDir() || ctx.Err() != nil {
			continue
		}
		one, err := e.eraseDirectory(ctx, t, x, cluster.Shard(n))
		if err != nil {
			return err
		}
		sum.add(one)
		all = append(all, cluster.Shard(n))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e.removing.Lock()
	defer e.removing.Unlock()
	done := t.version > 0
	for _, shard := range append(all, e.opened()...) {
		last, err := erasedFrom(e.o.directory(shard))
		done = done && err == nil && last >= x.Number
	}
	return e.desired.erased(ctx, e.o, x.Number, func(now *Erasure) bool {
		now.count(e.o.Cluster.Node, sum)
		return now.setDone(e.o.Cluster.Node, done) || sum != Erased{}
	})
}

// undone says that this node has not carried out an erasure, nor has the directory of a shard, before that gets a
// database that has not had it: the shard may leave the node before its turn.
func (e *engines) undone(ctx context.Context, shard cluster.Shard, number uint64) error {
	e.removing.Lock()
	defer e.removing.Unlock()
	dir := e.o.directory(shard)
	last, err := erasedFrom(dir)
	if err == nil && last >= number {
		err = setErasedFrom(dir, number-1)
	}
	if err != nil {
		return err
	}
	return e.desired.erased(ctx, e.o, number, func(now *Erasure) bool { return now.setDone(e.o.Cluster.Node, false) })
}

// setDone sets whether a node is done, and reports whether it was not so.
func (x *Erasure) setDone(node string, done bool) (changed bool) {
	n := x.Nodes[node]
	if n.Done == done {
		return false
	}
	n.Done = done
	x.Nodes[node] = n
	return true
}

// eraseDirectory erases from the directory of a shard, unless its engine is open.
func (e *engines) eraseDirectory(ctx context.Context, t *target, x *Erasure, shard cluster.Shard) (n Erased,
	err error) {
	e.removing.Lock()
	defer e.removing.Unlock()
	dir := e.o.directory(shard)
	done, err := erasedFrom(dir)
	if err != nil || done >= x.Number || e.isOpen(shard) {
		return n, err
	}
	for _, name := range []string{storage.FileName, starts.FileName} { // the next owner makes them of the snapshot
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
	}
	if n, err = e.o.Erase(ctx, Directory{
		Crawl: e.o.engine(shard, t.live), Names: x.names(), Output: x.Output,
	}); err != nil {
		return n, err
	}
	return n, setErasedFrom(dir, x.Number)
}
