package crawl

import (
	"errors"
	"io"
	"log/slog"
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
	"github.com/amble-crawler/amble/storage"
)

// store is what the engine needs of the storage package. Each role sees the part that it uses.
type store interface {
	inspect.Store
	Commit(*storage.Batch) (storage.Result, error)
	Joined() ([]string, error)
	Marks(string) (map[string][]byte, error)
	Fingerprint(weburl.URL) uint64
	Payload(storage.HostID, uint64) (storage.Payload, bool, error)
	Backup(begin func(size int64) (io.Writer, error)) (int64, error)
	Close() error
}

// Engine is a crawl of one data directory. Open makes one, Run drives it once. It opens and closes
// what a crawl consists of, and wires the roles to each other; its other methods reach the
// dispatcher by the mailbox. Status may be called by any goroutine at any time.
type Engine struct {
	o        Options // complete; immutable
	log      *slog.Logger
	store    store
	space    *diskSpace
	files    *outputFiles // nil: not open yet
	encoder  *archive.Encoder
	spool    *spool.Pool
	client   *fetch.Client
	ledger   ledger      // the dispatcher's during a Run
	requests *requestLog // the dispatcher's during a Run; nil: not open yet
	plan     *revisit.Plan
	crashes  *crashes
	observer Observer // nil: nobody

	live    atomic.Pointer[inForce]
	scope   atomic.Pointer[frontier.Scope]
	mailbox atomic.Pointer[mailbox] // of the Run; nil: none has begun
	status  atomic.Pointer[Status]
	table   *hostTable
	tally   tally
	copying sync.Mutex // held while a copy of the database is made

	opened    time.Time
	heldSince time.Time // since when every host has a restart hold; zero: none has
	suspects  bool      // the database has a mark of URLs that were in flight at deaths
}

// Open opens the data directory and settles what an earlier process left: it cuts the output to what
// is committed, and stores restart holds of hosts that may have received a request that no commit
// knows of. The errors of storage.Open come through.
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
	o.fill()
	e := &Engine{
		o: o, log: log, store: s, space: newDiskSpace(&o), table: newHostTable(), opened: o.Now(),
		crashes: &crashes{dir: filepath.Join(o.DataDir, CrashDir), version: o.Version},
	}
	e.live.Store(newInForce(&e.o, o.Live()))
	for _, step := range []func() error{e.openOutput, e.restorePlan, e.openClient, e.recover} {
		if err := step(); err != nil {
			return nil, errors.Join(err, e.closeParts())
		}
	}
	e.publish(Status{State: "opened"})
	return e, nil
}

// openClient makes the client, and the room for what it brings.
func (e *Engine) openClient() (err error) {
	if e.spool, err = spool.Open(e.o.Spool); err != nil {
		return err
	}
	e.o.Fetch.Spool = e.spool
	if e.client, err = fetch.New(e.o.Fetch, e.o.Now); err != nil {
		return err
	}
	e.encoder, err = archive.NewEncoder(e.o.Archive, e.spool)
	return err
}

func (e *Engine) openOutput() error {
	encoded, err := e.store.Mark(MarkOutput)
	if err != nil {
		return err
	}
	marks, err := decodeMarks(encoded)
	if err != nil {
		return err
	}
	w, err := archive.Open(e.o.Archive, marks)
	if err != nil {
		return err
	}
	e.files = &outputFiles{output: w, marks: w.Marks()}
	for _, a := range w.Aside() {
		e.logAside(a)
	}
	return nil
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
func (e *Engine) rulesReader() *rulesReader {
	return &rulesReader{store: e.store, log: e.log, tokens: e.o.Frontier.Tokens}
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
	if e.requests != nil {
		errs = append(errs, e.requests.close())
	}
	if e.files != nil {
		errs = append(errs, e.newCommitter().close())
	}
	return errors.Join(append(errs, e.store.Close())...)
}
