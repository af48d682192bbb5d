package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// store is what the engine needs of the storage package.
type store interface {
	inspect.Store
	Commit(*storage.Batch) (storage.Result, error)
	Heads(storage.HeadsRequest) (storage.Heads, error)
	Joined() ([]string, error)
	Marks(string) (map[string][]byte, error)
	Fingerprint(weburl.URL) uint64
	Payload(storage.HostID, uint64) (storage.Payload, bool, error)
	Counters() storage.Counters
	Backup(begin func(size int64) (io.Writer, error)) (int64, error)
	Close() error
}

// output is what the engine needs of the archive package.
type output interface {
	Append(*archive.Item, time.Time) error
	Sync() ([]archive.Mark, error)
	Rollback([]archive.Mark) error
	Expire(time.Time) ([]archive.Mark, error)
	Finish() ([]archive.Mark, error)
	Committed() error
	Close()
}

// ledger is what the engine needs of the start ledger.
type ledger interface {
	Append(storage.Start) (place uint64, err error)
	AppendWait(storage.Wait) error
	Place() uint64
	Trim(settled uint64) error
	Close() error
}

// Engine is a crawl of one data directory. Open makes one, Run drives it once.
// Status may be called by any goroutine at any time.
type Engine struct {
	o       Options
	log     *slog.Logger
	store   store
	out     output
	writes  bool // output is wanted
	encoder *archive.Encoder
	client  *fetch.Client
	spool   *spool.Pool // of the client
	ledger  ledger

	requests requests

	scope  atomic.Pointer[frontier.Scope]
	status atomic.Pointer[Status]
	tally  tally
	desk   atomic.Pointer[desk] // of the Run; nil: none has begun
	table  hostTable
	force  atomic.Pointer[inForce]

	plan      *revisit.Plan    // of renewals; nil: there are none
	adoptions []storage.HostID // hosts with pages that are to be put on the plan

	scopeSeeds int              // that the scope is made of, at the start of the Run
	decided    decided          // as last kept; the dispatcher's
	forgiven   []robots.Failure // see forgives; set before the Run has goroutines

	refusing atomic.Bool // no URLs are taken from outside
	copying  sync.Mutex  // held while a copy of the database is made

	observer Observer // nil: nobody
	sessions *frontier.Sessions
	free     func(dir string) (uint64, error) // room on the disk of a directory
	ending   atomic.Bool                      // the last commits may use what is kept free

	opened    time.Time
	owedSince time.Time      // from when every host owes its delay; zero: none does
	marks     []archive.Mark // as committed; the committer's
}

// MarkOutput is the name of the store's mark with the lengths of the output files.
const MarkOutput = "output"

// markOwed is the name of the mark with the time since when every host owes its delay.
const markOwed = "owed"

// Open opens the data directory and settles what an earlier process left: it
// cuts the output to what is committed, and writes down what is owed to hosts
// that may have been asked without a commit that knows of it. The errors of
// storage.Open come through.
func Open(o Options, log *slog.Logger) (*Engine, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := newPlan(&o); err != nil {
		return nil, err
	}
	s, err := storage.Open(o.DataDir, o.Storage)
	if err != nil {
		return nil, err
	}
	return open(o, s, log)
}

// open takes over the store: it closes it when it fails.
func open(o Options, s store, log *slog.Logger) (*Engine, error) {
	e := &Engine{o: o, log: log, store: s, free: storage.FreeBytes}
	e.opened = e.now()
	e.wantOutput()
	e.sessions = frontier.NewSessions(o.SessionNames)
	e.put(o.Live())
	if e.o.Frontier.Jitter == nil {
		e.o.Frontier.Jitter = rand.Float64
	}
	err := e.openOutput()
	if err == nil {
		err = e.restorePlan()
	}
	if err == nil {
		err = e.settleDebts()
	}
	if err == nil {
		err = e.openClient()
	}
	if err != nil {
		return nil, errors.Join(err, e.closeParts())
	}
	e.publish(Status{State: "opened"})
	return e, nil
}

// now reads the clock.
func (e *Engine) now() time.Time {
	if e.o.Now == nil {
		return time.Now()
	}
	return e.o.Now()
}

// newAlarm makes the alarm of a Run.
func (e *Engine) newAlarm() (alarm, error) {
	if e.o.VirtualTime {
		return newTimerAlarm(), nil
	}
	return newAlarm()
}

// openClient makes the client, and the room for what it brings.
func (e *Engine) openClient() (err error) {
	if e.o.Spool.Dir == "" {
		e.o.Spool.Dir = filepath.Join(e.o.DataDir, "spool")
	}
	if e.spool, err = spool.Open(e.o.Spool); err != nil {
		return err
	}
	e.o.Fetch.Spool = e.spool
	if e.client, err = fetch.New(e.o.Fetch, e.now); err != nil {
		return err
	}
	e.limitBandwidth()
	e.encoder, err = archive.NewEncoder(e.o.Archive, e.spool)
	return err
}

func (e *Engine) openOutput() error {
	encoded, err := e.store.Mark(MarkOutput)
	if err != nil {
		return err
	}
	if e.marks, err = decodeMarks(encoded); err != nil {
		return err
	}
	w, err := archive.Open(e.o.Archive, e.marks)
	if err != nil {
		return err
	}
	e.out, e.marks = w, w.Marks()
	for _, a := range w.Aside() {
		e.sayAside(a)
	}
	return nil
}

// sayAside says why an output file was set aside.
func (e *Engine) sayAside(a archive.Aside) {
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

// settleDebts reads the start ledger of the process before this one, commits
// what its hosts are owed and begins a new ledger.
func (e *Engine) settleDebts() error {
	encoded, err := e.store.Mark(storage.MarkLedger)
	if err != nil {
		return err
	}
	settled, err := storage.DecodePlace(encoded)
	if err != nil {
		return err
	}
	boot := storage.BootID()
	left := make(uncommitted)
	debt, err := storage.ReadDebt(e.o.DataDir, settled, boot, left.note)
	if err != nil {
		return err
	}
	if err := e.openRequests(boot, settled, debt.End, left); err != nil {
		return err
	}
	if err := e.commitDebt(&debt); err != nil {
		return fmt.Errorf("write down what hosts are owed: %w", err)
	}
	if err := e.out.Committed(); err != nil {
		return err
	}
	l, err := storage.OpenLedger(e.o.DataDir, boot, debt.End)
	if err == nil {
		e.ledger = l
	}
	return err
}

// Close closes the data directory. Run must have returned.
func (e *Engine) Close() error {
	e.client.Close()
	return e.closeParts()
}

func (e *Engine) closeParts() error {
	var errs []error
	if e.ledger != nil {
		errs = append(errs, e.ledger.Close())
	}
	errs = append(errs, e.closeRequests())
	if e.out != nil {
		errs = append(errs, e.closeOutput())
	}
	return errors.Join(append(errs, e.store.Close())...)
}

// newFrontier makes the frontier and gives it every host that the store knows.
func (e *Engine) newFrontier(ctx context.Context, scope *frontier.Scope) (*frontier.Frontier, error) {
	fo := e.o.Frontier
	fo.OwedSince, fo.Known, fo.Workers = e.owedSince, e.knownName, e.force.Load().Workers
	f, err := frontier.New(fo, scope, e.now())
	if err != nil {
		return nil, err
	}
	err = e.store.Hosts(func(h *storage.Host) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.Restore(h, e.now()); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		if e.plan != nil && unplanned(h) {
			e.adoptions = append(e.adoptions, h.ID)
		}
		return nil
	})
	return f, err
}
