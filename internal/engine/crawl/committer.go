package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/tally"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/storage"
)

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

// outputFiles are the output, and the lengths of its files as committed. Whoever commits owns them:
// the engine before and after a run, the committer while it lasts.
type outputFiles struct {
	output
	marks   []archive.Mark
	unnamed bool // a file could not get its name
}

// write appends items and makes them durable. It returns the marks to commit.
func (f *outputFiles) write(items []*archive.Item, now time.Time) ([]archive.Mark, error) {
	if len(items) == 0 {
		return f.marks, nil
	}
	for _, item := range items {
		if err := f.Append(item, now); err != nil {
			return nil, disk.OutputError(err)
		}
	}
	marks, err := f.Sync()
	return marks, disk.OutputError(err)
}

// committerStore is what the committer needs of the store: it is the only one that writes it.
type committerStore interface {
	Commit(*storage.Batch) (storage.Result, error)
}

// committer writes the output and the store.
type committer struct {
	o        *Options
	log      *slog.Logger
	store    committerStore
	files    *outputFiles
	space    *disk.Space
	tally    *tally.Tally
	observer Observer // nil: nobody

	batches   <-chan *batch
	committed chan<- *batch
	stalls    chan<- error
}

// run commits one batch after the other, and completes output files that are too old. The context
// ends its waiting for space on the disk.
func (c *committer) run(ctx context.Context) {
	old := time.NewTicker(c.expireEvery())
	defer old.Stop()
	for {
		select {
		case <-old.C:
			c.expire()
		case b, more := <-c.batches:
			if !more {
				return
			}
			commit := func() error { return c.commit(b) }
			b.err = protect(c.o, c.log, commit)
			for disk.MayPass(b.err) && disk.Wait(ctx, c.stalls, b.err) {
				b.err = protect(c.o, c.log, commit)
			}
			if err := b.close(); err != nil {
				c.log.Warn("cannot close what was written", "error", err)
			}
			c.committed <- b
		}
	}
}

// commit makes a batch durable: first the output, then the transaction that counts it. After an error both are as
// before, except for storage.ErrInDoubt: nobody knows whether the transaction counts, and the output keeps what it may
// or may not count. The next start finds out, and cuts the output to it. With a journal the same holds after
// storage.ErrPending, until a later try with the same batch succeeds.
func (c *committer) commit(b *batch) error {
	started := c.o.Now()
	if err := c.space.Check(); err != nil {
		return err
	}
	marks, err := b.marks, error(nil)
	if !b.inLog {
		if marks, err = c.files.write(b.items, started); err != nil {
			return err
		}
		b.setMark(storage.MarkOutput, archive.EncodeMarks(marks))
		b.setMark(storage.MarkLedger, storage.EncodeOffset(b.offset))
		c.tally.Keep(&b.passed, b.setMark)
	}
	b.result, err = c.store.Commit(&b.rows)
	if errors.Is(err, storage.ErrPending) {
		// The log counts the output, or may: it stays, and the next try goes on from here.
		b.inLog, b.marks = true, marks
		return c.space.Explain(err)
	}
	if errors.Is(err, storage.ErrInDoubt) {
		return fmt.Errorf("%w; the crawl ends here, and the next start finds out what was committed"+
			" and goes on from there", err)
	}
	if err != nil {
		if back := c.files.Rollback(c.files.marks); back != nil {
			return fmt.Errorf("%w; and take back the output: %w", err, disk.OutputError(back))
		}
		return c.space.Explain(err)
	}
	c.files.marks = marks
	c.nameFiles()
	b.took = c.o.Now().Sub(started)
	c.tally.Commits.Add(1)
	if c.observer != nil {
		c.observer.Committed(b.took, len(b.rows.Found)+len(b.rows.Done))
	}
	if b.took > time.Second {
		c.log.Debug("slow commit", "duration", b.took, "found", len(b.rows.Found), "done", len(b.rows.Done))
	}
	return nil
}

// nameFiles gives the output files that are complete their final names. That may fail for as long
// as it takes: nothing depends on it.
func (c *committer) nameFiles() {
	err := c.files.Committed()
	if err != nil && !c.files.unnamed {
		c.log.Warn("cannot give a complete output file its name; it is tried again", "error", err)
	}
	c.files.unnamed = err != nil
}

// expireEvery is how often the age of the output files is examined.
func (c *committer) expireEvery() time.Duration {
	if c.o.Archive.MaxFileAge == 0 {
		return time.Hour // there is no limit
	}
	return min(max(c.o.Archive.MaxFileAge/10, 10*time.Millisecond), time.Minute)
}

// expire completes output files that are too old, if nothing is written that would. What cannot be
// done now is tried again the next time.
func (c *committer) expire() {
	marks, err := c.files.Expire(c.o.Now())
	if err == nil && marks != nil {
		if err = c.space.Check(); err == nil {
			err = c.commitMarks(marks)
		}
	}
	if err == nil {
		err = c.files.Committed()
	}
	if err != nil {
		c.log.Warn("cannot complete an output file that is older than output.max_age; it is tried again", "error", err)
	}
}

// commitMarks commits marks of the output alone.
func (c *committer) commitMarks(marks []archive.Mark) error {
	_, err := c.store.Commit(&storage.Batch{Marks: map[string][]byte{storage.MarkOutput: archive.EncodeMarks(marks)}})
	if err == nil {
		c.files.marks = marks
	}
	return c.space.Explain(err)
}

// close completes the output files and closes them. If that cannot be committed they stay as they
// are, and the next run goes on with them.
func (c *committer) close() error {
	defer c.files.Close()
	marks, err := c.files.Finish()
	if err == nil && marks != nil {
		err = c.commitMarks(marks)
	}
	if err == nil {
		err = c.files.Committed()
	}
	if errors.Is(err, storage.ErrInDoubt) || errors.Is(err, storage.ErrNoSpace) || errors.Is(err, storage.ErrPending) {
		return nil // it was reported when that began
	}
	return err
}

// openOutput opens the files of the output behind what was committed.
func (e *Engine) openOutput() error {
	if err := e.o.Archive.Load(); err != nil {
		return err
	}
	encoded, err := e.store.Mark(storage.MarkOutput)
	if err != nil {
		return err
	}
	marks, err := archive.DecodeMarks(encoded)
	if err != nil {
		return err
	}
	e.o.Archive.Info = &archive.Info{Tags: e.seedTags,
		Warn: func(err error) { e.log.Warn("output", "error", err) }}
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

// seedTags returns the tags of the seeds.
func (e *Engine) seedTags() []string {
	if scope := e.scope.Load(); scope != nil {
		return scope.Seeds().Tags()
	}
	return nil
}
