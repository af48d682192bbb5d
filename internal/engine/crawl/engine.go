package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/bodies"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/crashes"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/domains"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/gates"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/load"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/optouts"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/quota"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/recovery"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/restore"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/survey"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/tally"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/visiting"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/maze"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// store is what the engine needs of the storage package. Each role sees the part that it uses.
type store interface {
	inspect.Store
	restore.Store
	Commit(*storage.Batch) (storage.Result, error)
	Seeds() ([]storage.SeedRow, error)
	Marks(string) (map[string][]byte, error)
	MarkNames(prefix, after string, most int) ([]string, error)
	Fingerprint(weburl.URL) uint64
	MetadataOf([]storage.Position) ([]storage.Metadata, error)
	sweep.DeletionStore
	Payload(storage.HostID, uint64) (storage.Payload, bool, error)
	Backup(begin func(size int64) (io.Writer, error)) (int64, error)
	Close() error
}

// Engine is a crawl of one data directory. Open makes one, Run drives it once. It opens and closes what a crawl
// consists of, and wires the roles to each other. Status may be called by any goroutine at any time.
//
// What others ask of it are layers: commands, which reach the dispatcher by the mailbox; views, which read; and
// lendings, for fetchers outside of the process.
type Engine struct {
	lendings
	space       *disk.Space
	files       *outputFiles // nil: not open yet
	encoder     *archive.Encoder
	quota       *quota.Engine  // the dispatcher's during a Run
	gate        gates.Gate     // nil: there is one engine
	bodies      *bodies.Recent // that the store does not know of yet
	domainHosts *domains.Hosts // nil: there is no limit
	mazes       *maze.Branches
	ledger      ledger       // the dispatcher's during a Run
	requests    *requestLog  // the dispatcher's during a Run; nil: not open yet
	client      work.Fetcher // of the workers
	crashes     *crashes.Files
	observer    Observer       // nil: nobody
	end         func()         // closes ended, once
	copying     sync.Mutex     // held while a copy of the database is made
	seedChanges sync.Mutex     // held during a change of seeds
	keptDelay   *time.Duration // of hosts, set by clients; nil: that of the options. The dispatcher's during a Run

	opened    time.Time
	heldSince time.Time       // since when every host has a restart hold; zero: none has
	lent      recovery.Leases // of fetchers, of earlier processes, that are out
	suspects  bool            // the database has a mark of URLs that were in flight at deaths
}

// commands are what any goroutine may ask of the dispatcher.
type commands struct {
	o       Options // complete; immutable
	log     *slog.Logger
	store   store
	mailbox atomic.Pointer[mailbox] // of the Run; nil: none has begun
	ready   chan struct{}           // closed when the mailbox of the Run is there
}

// views are what any goroutine may read.
type views struct {
	commands
	keyIndex // of queues
	shared   *Shared
	plan     *recrawl.Plan
	live     atomic.Pointer[inForce]
	scope    atomic.Pointer[frontier.Scope]
	status   atomic.Pointer[Status]
	table    *survey.Table
	tally    tally.Tally
	visits   *visiting.Visits
	ended    chan struct{} // closed when a Run has returned
}

// Open opens the data directory and settles what an earlier process left: it cuts the output to
// what is committed, and stores restart holds of hosts that may have received a request that no
// commit knows of. The errors of storage.Open come through.
func Open(o Options, log *slog.Logger) (*Engine, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := newPlan(&o); err != nil {
		return nil, err
	}
	if o.IgnoreRobots { // the client decides what a trap is
		o.Storage.MaxQueries, o.Storage.MaxSameDigest = 0, 0
	}
	s, err := openStore(&o)
	if err != nil {
		return nil, err
	}
	warnOfLoss(&o, s, log)
	if o.Journal != nil {
		logged, err := openLogged(s, &o)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return open(o, logged, log)
	}
	return open(o, s, log)
}

// warnOfLoss says that a crawl begins anew although files of an earlier one are there: the database may
// have been lost.
func warnOfLoss(o *Options, s *storage.Store, log *slog.Logger) {
	if !s.Created() || o.Journal != nil {
		return
	}
	var left []string
	if info, err := os.Stat(filepath.Join(o.DataDir, starts.FileName)); err == nil && info.Size() > 0 {
		left = append(left, filepath.Join(o.DataDir, starts.FileName))
	}
	if files, err := os.ReadDir(o.Archive.Dir); err == nil && len(files) > 0 {
		left = append(left, o.Archive.Dir)
	}
	if len(left) > 0 {
		log.Warn("the database did not exist or was empty, but files of an earlier crawl are there: the crawl begins "+
			"anew. If the database was lost, stop the crawl and restore a backup", "database", s.Path(), "files", left)
	}
}

// open takes over the store: it closes it when it fails.
func open(o Options, s store, log *slog.Logger) (*Engine, error) {
	o.fill()
	e := &Engine{
		space: newDiskSpace(&o), opened: o.Now(),
		bodies:  bodies.New(o.capturesExchanges() && s.Counters().Requests == 0),
		crashes: &crashes.Files{Dir: filepath.Join(o.DataDir, CrashDir), Version: o.Version},
	}
	e.o, e.log, e.store, e.table = o, log, s, survey.NewTable()
	e.ready, e.ended = make(chan struct{}), make(chan struct{})
	e.end = sync.OnceFunc(func() { close(e.ended) })
	e.live.Store(newInForce(&e.o, o.Live()))
	e.visits = e.newVisits()
	for _, step := range []func() error{
		e.restoreSettings, e.openOutput, e.restorePlan, e.openShared, e.settleLastProcess,
		func() error { return e.tally.Restore(e.store) },
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, e.closeParts())
		}
	}
	e.publish(Status{State: "opened"})
	return e, nil
}

// openShared makes what engines share, unless another has.
func (e *Engine) openShared() (err error) {
	if e.shared = e.o.Shared; e.shared == nil {
		if e.shared, err = newShared(&e.o, e.space, e.o.ownGates()); err != nil {
			return err
		}
		e.shared.keptDelay.Store(e.keptDelay)
		commanded, err := optouts.Commanded(e.store)
		if err != nil {
			return err
		}
		e.shared.shareOptOuts(commanded)
	}
	e.client = e.shared.client
	e.joinProcess()
	e.live.Load().limitBandwidth(e.shared)
	e.encoder, err = archive.NewEncoder(e.o.Archive, e.shared.spool)
	return err
}

// joinProcess makes the engine one of those that share.
func (e *Engine) joinProcess() {
	e.quota = e.shared.quota.Add()
	if e.shared.gates != nil {
		e.gate = e.shared.gates.Add(e.quota.Ring)
	}
}

// logAside logs why an output file was set aside.
func (e *Engine) logAside(a archive.Aside) {
	switch {
	case !a.Older:
		e.log.Warn("an output file was being written by a crawl that this database knows nothing of: it was set aside",
			"file", a.File, "now", a.As)
	case a.Kept == 0:
		e.log.Warn("the database is older than an output file: the file was set aside, and its pages are fetched again",
			"file", a.File, "now", a.As)
	default:
		e.log.Warn("the database is older than the end of an output file: the file was set aside, "+
			"what the database knows of it was copied, and the other pages are fetched again",
			"file", a.File, "now", a.As, "copied_bytes", a.Kept)
	}
}

// newCommitter returns a committer without channels. It owns the output files.
func (e *Engine) newCommitter() *committer {
	return &committer{
		o: &e.o, log: e.log, store: e.store, files: e.files, space: e.space, tally: &e.tally, observer: e.observer,
	}
}

// rulesReader returns what compiles stored robots.txt files.
func (v *views) rulesReader() *load.Rules {
	return &load.Rules{Store: v.store, Log: v.log, Tokens: v.o.Frontier.Tokens}
}

// Close closes the data directory. Run must have returned.
func (e *Engine) Close() error {
	if e.gate != nil {
		e.gate.Leave(false, e.o.Now())
	}
	if e.o.Shared == nil {
		e.shared.Close()
	}
	return e.closeParts()
}

func (e *Engine) closeParts() error {
	var errs []error
	if e.ledger != nil {
		errs = append(errs, e.ledger.Close())
	}
	if e.requests != nil {
		errs = append(errs, e.requests.Close())
	}
	if e.files != nil {
		errs = append(errs, e.newCommitter().close())
	}
	return errors.Join(append(errs, e.store.Close())...)
}

// Summary is what a Run came to.
type Summary struct {
	Status    Status
	Postponed []Postponed // hosts with URLs that could not be fetched, most first
	End       End         // why it is over; empty after an error
	Fresh     bool        // at least one request was made or one URL added
	Seeds     SeedReport
}

// ErrNothing says that there is nothing to crawl.
var ErrNothing = errors.New("there is nothing to crawl: the frontier is empty and no seed is given; " +
	"add URLs to crawl.seeds or crawl.seeds_file in the config file, or name them on the command line")

// Run crawls until everything is done, or until ctx ends: then requests in flight may finish within
// Options.ShutdownGrace, and Run commits and returns. Seeds that are known already cost nothing. An
// error means that it could not go on; what was committed is safe.
func (e *Engine) Run(ctx context.Context, seeds []Seed) (Summary, error) {
	defer e.end()
	before := e.store.Counters()
	d, c, err := e.prepare(ctx, seeds)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return Summary{Status: e.Status(), End: EndStopped}, nil
		}
		return Summary{}, err
	}
	e.mailbox.Store(d.mailbox)
	beginLending(e, c.workers)
	close(e.ready)
	err = c.run(ctx, d)
	after := e.store.Counters()
	s := d.summary(ctx, e.Status)
	if err == nil && e.o.Journal == nil { // an engine of a shard does not know what became of all seeds
		s.Seeds, err = seedReport(e.store, seeds, s.Postponed)
	}
	s.Fresh = after.Requests != before.Requests || after.URLs != before.URLs
	return s, err
}

// prepare does what comes before the first request: it fixes the scope, commits the seeds, reads
// the hosts, and makes the roles. The error is that of ctx if that has ended.
func (e *Engine) prepare(ctx context.Context, seeds []Seed) (*dispatcher, *roles, error) {
	shared, sharedScope := e.o.sharedSeeds()
	scope, err := newInitialScope(e.store, &e.o, seeds, shared...)
	if err != nil {
		return nil, nil, err
	}
	e.scope.Store(scope.scope)
	kept, forgiven, err := e.reconsider(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(e.fetchAgain(ctx), e.addSeeds(ctx, scope)); err != nil {
		return nil, nil, err
	}
	if e.store.Counters().URLs == 0 {
		if e.live.Load().ExitWhenDone {
			return nil, nil, ErrNothing
		}
		if e.o.Journal == nil { // a shard without a host is nothing to tell
			e.log.Info("the frontier is empty: the crawl waits for URLs (amble seed add, amble import)")
		}
	}
	f, adoptions, err := e.newFrontier(ctx, scope.scope)
	if err != nil {
		return nil, nil, fmt.Errorf("read the hosts of %s: %w", e.o.DataDir, err)
	}
	d, c := e.newRoles(f, load.Forgiveness{Failures: forgiven, Before: e.opened})
	if c.incoming, err = e.newIncoming(d.mailbox); err != nil {
		return nil, nil, err
	}
	d.settings, d.sharedScope = kept, sharedScope
	if e.plan != nil {
		d.sweeps.adopter = &sweep.Adopter{
			Store: e.store, Plan: e.plan, Rule: &e.o.Recrawl.Rule, Hosts: adoptions,
		}
	}
	if err := d.restore(); err != nil {
		return nil, nil, err
	}
	return d, c, d.restoreLending(e.lent, e.store)
}

// newFrontier makes the frontier and gives it every host that the store knows. adoptions are the
// hosts with pages to put on the recrawl plan.
func (e *Engine) newFrontier(ctx context.Context, scope *frontier.Scope) (
	f *frontier.Frontier, adoptions []storage.HostID, err error,
) {
	e.domainHosts = domains.New(e.o.MaxDomainHosts, storage.HostID(e.store.Counters().Hosts))
	e.mazes = maze.New(e.o.Traps.MazePages)
	fo := e.o.Frontier
	marks, err := e.store.Marks(maze.Mark)
	if err == nil {
		fo.SeedPages, err = e.store.Marks(frontier.MarkSeedPages)
	}
	if err != nil {
		return nil, nil, err
	}
	e.mazes.Restore(marks)
	if e.o.Journal != nil && e.o.Cluster != nil {
		fo.Owns = e.o.Journal.Owns
	}
	fo.HeldSince, fo.Known, fo.Workers = e.heldSince, e.knownName, e.live.Load().Workers
	fo.Hosts = int(e.store.Counters().Hosts)
	if fo.OnlyJobs = e.o.OnlyVisits; e.gate != nil {
		fo.Gate = e.gate
	}
	if f, err = frontier.New(fo, scope, e.o.Now()); err != nil {
		return nil, nil, err
	}
	guard := func(f func() error) error { return protect(&e.o, e.log, f) }
	err = restore.Hosts(ctx, e.store, f, e.o.Now, guard, func(h *storage.Host) {
		if e.plan != nil && sweep.IsUnplanned(h) {
			adoptions = append(adoptions, h.ID)
		}
	})
	return f, adoptions, err
}
