package crawl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/recovery"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/storage"
	"github.com/amble-crawler/amble/storage/starts"
)

// settleLastProcess settles what the process before this one left, and begins a new start ledger.
func (e *Engine) settleLastProcess() error {
	o := &e.o
	left, err := recovery.Settle(recovery.Options{
		DataDir: o.DataDir, Version: o.Version, Taken: o.Taken, IgnoreRobots: o.IgnoreRobots, Now: o.Now,
		Uptime: o.Uptime, Frontier: &o.Frontier, Requests: o.Requests, UserAgent: o.Fetch.UserAgent,
		HasOutput: !o.Archive.IsNone(), Opened: e.opened, Limits: e.live.Load().politeness, Encoder: e.encoder,
		Tally: &e.tally, Commit: e.commitFirst,
	}, e.store, e.log)
	if left.Requests != nil {
		e.requests = &requestLog{Requests: left.Requests}
	}
	if err != nil {
		return err
	}
	e.heldSince, e.suspects, e.lent = left.HeldSince, left.Suspects, left.Leases
	if err := e.files.Committed(); err != nil {
		return err
	}
	l, err := starts.Open(o.DataDir, left.Boot, left.LedgerEnd)
	if err == nil {
		e.ledger = l
	}
	return err
}

// commitFirst commits a batch before a run, with what the output has of it.
func (e *Engine) commitFirst(b *storage.Batch, items []*archive.Item) error {
	marks, err := e.files.write(items, e.o.Now())
	if err != nil {
		return err
	}
	b.Marks[storage.MarkOutput] = archive.EncodeMarks(marks)
	if _, err = e.store.Commit(b); err == nil { // else the next start cuts the output where its marks are
		e.files.marks = marks
	}
	return err
}

// CrashDir is the name of the directory under the data directory that holds the responses at which
// amble panicked.
const CrashDir = "crashes"

// markCrash stores the version that crashed at a URL of a host, in the commit of the URL's outcome.
func (g *gathering) markCrash(host storage.HostID) {
	g.pending.setMark(sweep.CrashMark(host), []byte(g.o.Version))
}

// ErasureFile is the name of the file under the data directory that exists while hosts are erased.
// Until the erasure has ended, Open and the functions for a crawl that does not run refuse the
// directory with ErrErasing.
const ErasureFile = "erasing.json"

// ErrErasing says that hosts are being erased, or that this was interrupted.
var ErrErasing = errors.New("an erasure of hosts has not ended")

// openStore opens the store in o.DataDir, unless hosts are being erased there.
func openStore(o *Options) (*storage.Store, error) {
	s, err := storage.Open(o.DataDir, o.Storage)
	if err != nil {
		return nil, err
	}
	if err := checkErasure(o.DataDir); err != nil { // nobody begins one from here on
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkErasure returns ErrErasing while an erasure has not ended.
func checkErasure(dir string) error {
	path := filepath.Join(dir, ErasureFile)
	if _, err := os.Stat(path); err != nil {
		return nil // nor is there one if the directory cannot be read
	}
	return fmt.Errorf("%w: %s is there; amble run goes on with it and then crawls, amble erase --resume goes on "+
		"with it alone", ErrErasing, path)
}
