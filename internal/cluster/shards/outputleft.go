//go:build !core

package shards

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/storage"
)

// outputLeft finishes the output files of shards that other nodes own: a node that was killed, or cut off, may leave
// some unfinished.
type outputLeft struct {
	*Node
	mu    sync.Mutex                         // held while it looks
	tried map[cluster.Shard]cluster.Sequence // the epoch up to which a shard has nothing left, or cannot be read
}

// leftEvery is how often it is looked whose shards they are.
const leftEvery = 5 * time.Second

// run finishes files until the context ends.
func (l *outputLeft) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.finish(ctx)
		pause(ctx, leftEvery)
	}
}

// finish finishes the files of the shards that other nodes own.
func (l *outputLeft) finish(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.member.Status()
	if known.Trust == 0 {
		return
	}
	for i := range known.Shards {
		at, s := &known.Shards[i], cluster.Shard(i)
		if at.Owner == "" || at.Owner == known.Node || l.tried[s] == at.Epoch {
			continue
		}
		err := l.engines.finishOutput(ctx, s, uint64(at.Epoch))
		if errors.Is(err, storage.ErrLogDown) || ctx.Err() != nil {
			continue
		}
		if l.tried[s] = at.Epoch; err != nil {
			l.engines.log.Warn("an output file of a shard that another node owns stays unfinished", "shard", s,
				"error", err)
		}
	}
}

// isUnfinished reports whether a shard has an output file that is not finished, and a database that knows of it.
func (e *engines) isUnfinished(s cluster.Shard) bool {
	dir := e.o.directory(s)
	if _, err := os.Stat(filepath.Join(dir, storage.FileName)); err != nil {
		return false
	}
	files, _ := os.ReadDir(e.o.engine(s, nil).Archive.Dir) // without it there are none
	for _, f := range files {
		if strings.HasSuffix(f.Name(), archive.SuffixOpen) {
			return true
		}
	}
	return false
}

// finishOutput finishes the output files of a shard whose engine is not open, by what its log has up to an epoch.
func (e *engines) finishOutput(ctx context.Context, s cluster.Shard, epoch uint64) error {
	e.removing.Lock()
	defer e.removing.Unlock()
	if e.isOpen(s) || !e.isUnfinished(s) {
		return nil
	}
	o := e.o.engine(s, nil)
	o.Journal = &heldLog{Shard: e.streams.Shard(ctx, int(s), epoch), held: ctx, scope: e.scope, wait: e.o.Timeout}
	return crawl.FinishOutput(o, e.log.With("shard", s))
}
