//go:build !core

package shards

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/storage"
)

// run is one run of the engine of a shard, under one epoch.
type run struct {
	common
	holding *membership.Holding
	stop    context.CancelFunc
	pages   *pageBlocks                  // nil: there is no limit
	part    *recrawlPart                 // nil: there is no limit
	held    *heldLog                     // set when the engine opens
	engine  atomic.Pointer[crawl.Engine] // nil: it is not open
	summary crawl.Summary                // of an engine that has ended
	ended   func(*crawl.Summary)         // counts that of an engine behind which another one runs
	undone  func(ctx context.Context, shard cluster.Shard, erasure uint64) error
	lent    lent[*crawl.Engine]
	robots  *robotsRequests // set before the engine is lent

	mayErase uint64 // the erasure up to which all is committed that was published for the shard before
}

// retryDown is how long to wait before the shard is claimed again, when its log cannot be reached.
const retryDown = time.Second

// drive opens the engine, runs it until ctx ends or the shard is lost, and closes it. The error is a fault of the
// shard, which faultOf recognises, or says why this node cannot run engines.
func (r *run) drive(ctx context.Context) error {
	r.desired.note(r, 0)
	defer r.desired.forget(r)
	shard := r.streams.Shard(r.holding.Context(), int(r.holding.Shard()), uint64(r.holding.Epoch()))
	err := r.crawl(ctx, shard)
	for errors.Is(err, errErase) && ctx.Err() == nil {
		r.ended(&r.summary)
		r.summary = crawl.Summary{}
		err = r.crawl(ctx, shard)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrLost):
		if r.holding.Context().Err() == nil {
			r.log.Warn("the shard belongs to another node", "error", err)
			r.refused.Add(1)
			r.holding.Refused()
		}
		return nil
	case errors.Is(err, storage.ErrLogDown):
		r.log.Warn("the log of the shard cannot be reached; it is tried again", "error", err)
		pause(ctx, retryDown)
		return nil
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return nil
	}
	return err
}

// faultOf returns the fault of a shard that an error is; false: the error is one of this node, such as that of its
// disk. What is the same wherever it is read, and a panic, would fail on another node too.
func faultOf(err error) (f cluster.Fault, ok bool) {
	var message *storage.MessageError
	switch {
	case errors.As(err, &message):
		f.Kind, f.Sequence = message.Kind, cluster.Sequence(message.Sequence)
	case errors.Is(err, storage.ErrRecord), errors.Is(err, storage.ErrNewer), errors.Is(err, crawl.ErrPanic):
	default:
		return f, false
	}
	f.Reason = err.Error()
	return f, true
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// crawl runs the engine until ctx ends.
func (r *run) crawl(ctx context.Context, shard *journal.Shard) error {
	if err := r.desired.read(ctx); err != nil {
		return err
	}
	_, sequence, _ := r.desired.latest()
	now, err := r.desired.reached(ctx, sequence)
	if err != nil {
		return err
	}
	if err := r.erase(ctx, shard, &now); err != nil {
		return err
	}
	e, err := r.open(ctx, shard, &now)
	if err != nil {
		return err
	}
	r.engine.Store(e)
	defer r.engine.Store(nil)
	running, end := context.WithCancelCause(ctx)
	stop := func() { end(nil) }
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { r.followDesired(running, e, now, end) })
	beside.Go(func() { r.carryOut(running, e) })
	if r.pages != nil {
		beside.Go(func() { r.pages.run(running, e) })
	}
	e.Observe(r.observer)
	r.robots = newRobotsRequests(running, e.FetchRobots)
	finished := r.lent.begin(e)
	r.summary, err = e.Run(running, nil)
	finished()
	r.summary.Status = e.Status()
	if ctx.Err() == nil && errors.Is(context.Cause(running), errErase) {
		err = errors.Join(errErase, err)
	}
	stop()
	beside.Wait()
	r.robots.working.Wait()
	if r.pages != nil && err == nil {
		r.returnPages(e.Fetched())
	}
	return errors.Join(err, e.Close())
}

// returnPages gives back the pages that an engine that has ended has not used. If that fails, the next owner
// uses them.
func (r *run) returnPages(fetched uint64) {
	ctx, cancel := context.WithTimeout(r.holding.Context(), r.o.Timeout)
	defer cancel()
	r.pages.Release(fetched)
	if err := r.pages.returnUnused(ctx, fetched); err != nil && !errors.Is(err, errUnchanged) {
		r.log.Info("pages that were not used stay with the shard", "error", err)
	}
}

// mayWrite returns nil if no other node can own the shard.
func (r *run) mayWrite() error {
	if r.trust.Left() < r.o.Cluster.LastStart {
		return membership.ErrNotTrusted
	}
	return r.holding.Context().Err()
}

// open opens the engine. A database that is missing, or that the log does not reach back to, is made
// of the newest snapshot.
func (r *run) open(ctx context.Context, shard *journal.Shard, now *target) (*crawl.Engine, error) {
	o := r.o.engine(r.holding.Shard(), now.live)
	o.Shared, o.Permits, o.Paused = r.shared, permits{r.holding}, &now.Paused
	r.held = &heldLog{Shard: shard, held: r.holding.Context(), scope: r.scope, wait: r.o.Timeout}
	o.Journal = r.held
	if r.maxPages != nil {
		r.pages = newPageBlocks(r.maxPages, r.o.Crawl.MaxPages, r.holding.Shard(), r.mayWrite)
		o.Pages = r.pages
	}
	if r.part != nil {
		o.RecrawlBudget = r.part.inForce
	}
	o.Cluster = &others{r.scope, r.owners, r.o.Cluster.Shards, r.holding.Context()}
	if err := r.scope.readUpTo(shard); err != nil {
		return nil, err
	}
	if err := makeDir(o.DataDir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(o.DataDir, storage.FileName)); errors.Is(err, fs.ErrNotExist) {
		if _, _, err := shard.Restore(ctx, o.DataDir); err != nil {
			return nil, err
		}
	}
	e, err := crawl.Open(o, r.log)
	if errors.Is(err, storage.ErrGap) {
		if e, err = r.openSnapshot(ctx, shard, o); err != nil {
			return nil, err
		}
	}
	if err == nil {
		if err = system.SyncDir(o.DataDir); err != nil {
			err = errors.Join(err, e.Close())
		}
	}
	return e, err
}

// openSnapshot opens the engine with the newest snapshot in place of its database.
func (r *run) openSnapshot(ctx context.Context, shard *journal.Shard, o crawl.Options) (*crawl.Engine, error) {
	at, restored, err := shard.Restore(ctx, o.DataDir)
	if err == nil && !restored {
		err = fmt.Errorf("shard %d has no snapshot: %w", r.holding.Shard(), storage.ErrGap)
	}
	if err != nil {
		return nil, err
	}
	r.log.Info("the log does not reach back to the database of the shard; a snapshot replaces it", "record", at.Number)
	return crawl.Open(o, r.log)
}

// followDesired gives the engine the desired state of the crawl, until ctx ends. It has one already.
func (r *run) followDesired(ctx context.Context, e *crawl.Engine, has target, end context.CancelCauseFunc) {
	select {
	case <-e.Ready():
	case <-ctx.Done():
		return
	}
	for {
		now, moved := r.desired.current()
		if r.mustErase(&now) && r.catchUp(ctx, &now) {
			end(errErase)
			return
		}
		if now.version > has.version {
			if r.submit(ctx, e, &now, &has) != nil { // the engine is ending
				return
			}
			has = now
		}
		r.desired.note(r, has.version)
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// submit gives the engine a target in place of the one that it has.
func (r *run) submit(ctx context.Context, e *crawl.Engine, now, has *target) error {
	if err := e.TakeOptOuts(ctx); err != nil {
		return err
	}
	if now.live != has.live {
		if err := e.Change(ctx, ofEngine(*now.live)); err != nil {
			return err
		}
	}
	if now.Paused == has.Paused {
		return nil
	}
	if now.Paused {
		return e.Pause(ctx)
	}
	return e.Resume(ctx)
}

// makeDir makes the directory of a shard, durably.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the directory of a shard: %w", err)
	}
	return errors.Join(system.SyncDir(filepath.Dir(dir)), system.SyncDir(filepath.Dir(filepath.Dir(dir))))
}

// answerRest answers whether the shard is at rest. What was read before it was at rest is committed.
func (r *run) answerRest(ctx context.Context, e *crawl.Engine, query []byte) ([]byte, error) {
	d := wire.NewDecoder(query)
	closed := d.Byte()
	d.Require(closed <= 1)
	if err := d.End(); err != nil {
		return nil, err
	}
	answer := rest{epoch: uint64(r.holding.Epoch()), read: r.held.read.Load()}
	is, err := e.Rest(ctx, closed == 1)
	if err != nil {
		return nil, err
	}
	answer.number, answer.done = is.Number, is.Done
	if p := r.pages; p != nil {
		var used, all bool
		used, all, answer.pages = p.isUsed(is.Fetched)
		answer.done = is.Quiet && used && (all || r.o.Crawl.ExitWhenDone && is.Done)
	}
	return answer.append(nil), nil
}

// answerRobots answers what a robots.txt request for another shard has brought.
func (r *run) answerRobots(_ context.Context, _ *crawl.Engine, query []byte) ([]byte, error) {
	return r.robots.answer(query)
}
