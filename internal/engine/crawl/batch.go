package crawl

import (
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/marks"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/maze"
	"github.com/amble-crawler/amble/storage"
)

// batch is what one commit writes. It belongs to the dispatcher until that hands it over, then to
// the committer until it comes back.
type batch struct {
	rows   storage.Batch
	items  []*archive.Item // of the output
	bytes  int64           // in items
	offset uint64          // in the ledger; requests before it are settled
	pages  int             // fetched
	passed marks.Totals    // by the requests in it; zero: they are in the tally
	size   int             // results and discoveries

	swept    []*sweep.Sweep // whose end is in it
	begun    []*sweep.Sweep // whose first mark is in it; they start when it is on disk
	waiting  []chan<- error // told what became of the commit; each holds one
	puts     []*putGroup    // in rows.Found
	putBytes int            // of the metadata of puts
	addition *addition      // what the batch consists of; nil: the crawl's own work

	forgotten []sweep.PlannedPage // taken off the recrawl plan, if their outcomes in rows.Done count

	inLog bool           // the journal has the batch, or may: see storage.ErrPending
	marks []archive.Mark // of the output that it counts then

	result storage.Result
	took   time.Duration // the commit
	err    error
}

// reuse returns an empty batch with the memory of a committed one.
func (b *batch) reuse() *batch {
	return &batch{
		rows: storage.Batch{
			Found: emptied(b.rows.Found), Done: emptied(b.rows.Done), Hosts: emptied(b.rows.Hosts),
		},
		items: emptied(b.items),
	}
}

func emptied[T any](s []T) []T {
	if cap(s) > maxReused {
		return nil
	}
	clear(s)
	return s[:0]
}

// merge adds what the frontier gathered.
func (b *batch) merge(rows storage.Batch) {
	b.rows.Done = append(b.rows.Done, rows.Done...)
	b.rows.Hosts = append(b.rows.Hosts, rows.Hosts...)
	b.rows.Policies = append(b.rows.Policies, rows.Policies...)
	b.rows.Ensure = append(b.rows.Ensure, rows.Ensure...)
	b.rows.Seeds = append(b.rows.Seeds, rows.Seeds...)
	for name, value := range rows.Marks {
		b.setMark(name, value)
	}
	b.size += len(rows.Done) + len(rows.Hosts)
}

// add adds what a request brought.
func (b *batch) add(r *work.Result) {
	if r.Item != nil {
		b.items = append(b.items, r.Item)
		b.bytes += r.Item.Size()
	}
	if r.Payload != nil {
		b.rows.Payloads = append(b.rows.Payloads, *r.Payload)
	}
	if r.History != nil {
		b.rows.RobotsHistory = append(b.rows.RobotsHistory, *r.History)
	}
	if d := r.Declared; d != nil {
		b.setMark(d.Mark, d.Value)
	}
	if r.Mazes != "" {
		b.setMark(maze.Mark+r.Lease.HostName, []byte(r.Mazes))
	}
	b.passed.Take(&r.Passed)
	b.rows.Found = append(b.rows.Found, r.Found...)
	b.rows.Done = append(b.rows.Done, r.Others...)
	b.rows.Refused = append(b.rows.Refused, r.Refused...)
	b.size += len(r.Found) + len(r.Refused)
}

// setMark sets a mark of the database; nil removes it.
func (b *batch) setMark(name string, value []byte) {
	if b.rows.Marks == nil {
		b.rows.Marks = make(map[string][]byte)
	}
	b.rows.Marks[name] = value
}

// isEmpty reports whether there is nothing to commit, and nobody who waits for a commit.
func (b *batch) isEmpty() bool { return b.rows.Empty() && len(b.items)+len(b.waiting)+len(b.puts) == 0 }

// answer tells those who wait for the commit what became of it.
func (b *batch) answer(err error) {
	for _, w := range b.waiting {
		w <- err
	}
	b.waiting = nil
	b.answerPuts(err)
}

// close gives back what the items of the output hold, when they are committed or given up.
func (b *batch) close() error {
	var errs []error
	for _, item := range b.items {
		errs = append(errs, item.Close())
	}
	b.items, b.bytes = emptied(b.items), 0
	return errors.Join(errs...)
}

// batching gathers what the next commit writes. The dispatcher owns it.
type batching struct {
	pending     *batch // gathers for the next commit
	spare       *batch // to be used again; nil: none
	batchSize   storage.BatchSizer
	pauseEnd    time.Time // of the pause between two commits of the crawl's own work; zero: there is none
	committing  bool      // the committer has a batch
	broken      bool      // a commit failed for good
	uncommitted int       // pages fetched and not yet committed
	offset      uint64    // in the ledger, of the last batch that was handed over
	addition    *addition // waits for a commit of its own; nil: none does
	lastAdded   bool      // the last batch handed over was an addition
}

// isFull reports whether no more should gather for the next commit.
func (b *batching) isFull() bool {
	return b.pending.bytes > maxPendingBytes || b.pending.size > b.batchSize.Items()
}

// gathers reports whether the next commit is to wait for more results. It does not if somebody
// waits for it.
func (b *batching) gathers() bool {
	p := b.pending
	return !b.pauseEnd.IsZero() && p.size < min(maxGather, b.batchSize.Items()) && p.bytes < maxPendingBytes/2 &&
		len(p.waiting)+len(p.puts) == 0
}

// nextAddition returns the addition that waits, as a batch of its own so that its result is counted
// apart, or nil if it is not its turn. Additions take turns with the crawl's own work if that is
// ready. Scope seeds come before URLs that were judged by them.
func (b *batching) nextAddition(ready bool) *batch {
	a := b.addition
	if a == nil || b.lastAdded && ready || len(b.pending.rows.Seeds) > 0 {
		return nil
	}
	return &batch{
		addition: a, offset: b.offset,
		rows: storage.Batch{
			Found: a.Found, Done: a.Again, InsertResults: make([]storage.InsertResult, len(a.Found)), Marks: a.marks,
		},
	}
}

// handedOver takes note that the committer has a batch.
func (b *batching) handedOver(to *batch) {
	b.committing = true
	if b.lastAdded = to.addition != nil; b.lastAdded {
		b.addition = nil
		return
	}
	b.offset = to.offset
	if b.pending, b.spare = b.spare, nil; b.pending == nil {
		b.pending = new(batch)
	}
}

// nextBatch returns the channel and the batch to offer to the committer; a nil channel if there is
// nothing to commit or the committer is busy. After a commit that failed for good nothing is
// offered: what follows it on disk must not skip what it held.
//
// Every result so far is in the batch, so the requests in flight are all that the ledger has to
// remember.
func (oc *outcomes) nextBatch() (chan<- *batch, *batch) {
	if oc.committing || oc.broken {
		return nil, nil
	}
	ready := oc.hasToCommit() && (oc.shuttingDown || oc.flights.busy == 0 || !oc.gathers())
	if b := oc.nextAddition(ready); b != nil {
		return oc.toCommit, b
	}
	if !ready {
		return nil, nil
	}
	oc.markPlan(oc.pending)
	oc.pending.sizeResults()
	oc.remote.Save(oc.pending.setMark, oc.o.Now())
	oc.pending.offset = oc.completedOffset()
	return oc.toCommit, oc.pending
}

// hasToCommit reports whether there is something to commit. At the end of the run that may be no
// more than the end of requests that changed nothing: whoever finds their starts in the ledger has
// to believe that they were lost.
func (oc *outcomes) hasToCommit() bool {
	return !oc.pending.isEmpty() || oc.shuttingDown && oc.flights.count() == 0 && oc.offset < oc.completedOffset()
}

// completedOffset returns the offset in the ledger before which no request is in flight.
func (oc *outcomes) completedOffset() uint64 {
	return oc.remote.OffsetBefore(oc.flights.completedOffset(oc.ledger.Offset()))
}

// takeCommitted applies the end of a commit.
func (oc *outcomes) takeCommitted(b *batch) {
	oc.committing = false
	oc.uncommitted -= b.pages
	b.answerAddition()
	oc.endPuts(b)
	if b.err != nil {
		b.answer(b.err)
		oc.broken = true
		oc.fail(b.err)
		return
	}
	oc.stall.Committed()
	now := oc.o.Now()
	oc.batchSize.Committed(b.size, b.result.Changed, b.took)
	oc.f.Committed(&b.rows, b.result, now)
	oc.bodies.Committed(b.rows.Payloads)
	oc.sweeps.waiting = append(oc.sweeps.waiting, b.begun...)
	for _, s := range b.swept {
		s.Ended(oc.f, now)
	}
	oc.keysCommitted(b, now)
	oc.recallPages(b)
	b.answer(nil)
	oc.tally.Committed(b.rows.Done, &b.result)
	if b.addition == nil {
		oc.pauseEnd = now.Add(min(pauseTimes*b.took, maxPause))
		oc.spare = b.reuse()
	}
	// Without room for a new ledger the old one goes on growing.
	if err := oc.ledger.Trim(b.offset); err != nil && !errors.Is(err, storage.ErrNoSpace) {
		oc.fail(err)
	}
}

// A commit costs nearly the same whatever it holds: it waits for the disk, and writes each row that
// it touches as a whole. So results gather for a while between two commits, as long as there is
// something else to do meanwhile.
const (
	pauseTimes = 3                     // the pause between commits, in times of the last commit
	maxPause   = 50 * time.Millisecond // bounds it
	maxGather  = 5_000                 // results at which it ends
)

// maxPendingBytes is how many bytes of output may gather for the next commit before nothing is
// given out any more.
const maxPendingBytes = 32 << 20

// maxReused bounds the memory that a batch is used again with, in items of each kind.
const maxReused = 8_192

// supersede adds a line to the output for each URL whose last line counts no more.
func (q *sweepQueue) supersede(p *sweep.Step, to *batch) error {
	for _, s := range p.Superseded {
		item, err := q.encoder.Encode(&archive.Visit{Page: &archive.Page{
			URL: s.URL, Depth: int(s.Depth), Attempts: int(s.Attempts), Reason: "superseded", Note: s.Why,
		}})
		if err != nil {
			return fmt.Errorf("encode a line for the output: %w", err)
		}
		if !item.Empty() {
			to.items = append(to.items, item)
			to.bytes += item.Size()
		}
	}
	return nil
}
