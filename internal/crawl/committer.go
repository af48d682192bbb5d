package crawl

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/storage"
)

// commitAll is the committer: it commits one job after the other, and completes output files that are too old.
func (r *run) commitAll(ctx context.Context) {
	old := time.NewTicker(r.expireEvery())
	defer old.Stop()
	for {
		select {
		case <-old.C:
			r.expire()
		case j, more := <-r.toCommit:
			if !more {
				return
			}
			j.err = r.commit(ctx, j)
			for passing(j.err) && r.pause(ctx, j.err) {
				j.err = r.commit(ctx, j)
			}
			if err := j.close(); err != nil {
				r.log.Warn("cannot close what was written", "error", err)
			}
			r.committed <- j
		}
	}
}

// expireEvery is how often the age of the output files is looked at.
func (e *Engine) expireEvery() time.Duration {
	if e.o.Archive.MaxFileAge == 0 {
		return time.Hour // there is no limit
	}
	return min(max(e.o.Archive.MaxFileAge/10, 10*time.Millisecond), time.Minute)
}

// expire completes output files that are too old, where nothing is written that would. What cannot be done now is tried again the next time.
func (r *run) expire() {
	marks, err := r.out.Expire(r.now())
	if err == nil && marks != nil {
		if err = r.checkRoom(); err == nil {
			err = r.commitMarks(marks)
		}
	}
	if err == nil {
		err = r.out.Committed()
	}
	if err != nil {
		r.log.Warn("cannot complete an output file that is older than output.max_age; it is tried again", "error", err)
	}
}

// commitMarks commits marks of the output alone.
func (e *Engine) commitMarks(marks []archive.Mark) error {
	_, err := e.store.Commit(&storage.Batch{Marks: map[string][]byte{MarkOutput: encodeMarks(marks)}})
	if err == nil {
		e.marks = marks
	}
	return e.roomError(err)
}

// closeOutput completes the output files and closes them. Where that cannot be committed they stay
// as they are, and the next run goes on with them.
func (e *Engine) closeOutput() error {
	defer e.out.Close()
	marks, err := e.out.Finish()
	if err == nil && marks != nil {
		err = e.commitMarks(marks)
	}
	if err == nil {
		err = e.out.Committed()
	}
	if errors.Is(err, storage.ErrInDoubt) || errors.Is(err, storage.ErrNoSpace) {
		return nil // it was said when that began
	}
	return err
}

// pause says that something cannot be written and waits before the next try.
func (r *run) pause(ctx context.Context, err error) bool {
	select {
	case r.stalls <- err:
	default: // the dispatcher knows
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(retryFull):
		return true
	}
}

// commit makes a job durable: first the output, then the transaction that counts it. After an error
// both are as before, but for storage.ErrInDoubt: then nobody knows whether the transaction counts,
// and the output is left as it is, with what it may or may not count. The next start finds out
// which, and cuts the output to it.
func (r *run) commit(ctx context.Context, j *job) error {
	started := r.now()
	if err := r.checkRoom(); err != nil {
		return err
	}
	marks, err := r.write(j.items)
	if err != nil {
		return err
	}
	j.setMark(MarkOutput, encodeMarks(marks))
	j.setMark(storage.MarkLedger, storage.EncodePlace(j.place))
	j.result, err = r.store.Commit(&j.batch)
	if errors.Is(err, storage.ErrInDoubt) {
		return fmt.Errorf("%w; the crawl ends here, and the next start finds out what was committed"+
			" and goes on from there", err)
	}
	if err != nil {
		if back := r.out.Rollback(r.marks); back != nil {
			return fmt.Errorf("%w; and take back the output: %w", err, outputError(back))
		}
		return r.roomError(err)
	}
	r.marks = marks
	r.nameFiles()
	r.tally.commits.Add(1)
	took := time.Since(started)
	j.took = took
	if r.observer != nil {
		r.observer.Committed(took, len(j.batch.Found)+len(j.batch.Done))
	}
	if took > time.Second {
		r.log.Debug("slow commit", "duration", took, "found", len(j.batch.Found), "done", len(j.batch.Done))
	}
	return nil
}

// nameFiles gives the output files that are complete their final names. That may fail for as long
// as it takes: nothing depends on it.
func (r *run) nameFiles() {
	err := r.out.Committed()
	if err != nil && !r.unnamed {
		r.log.Warn("cannot give a complete output file its name; it is tried again", "error", err)
	}
	r.unnamed = err != nil
}

// write appends items to the output and makes them durable.
func (e *Engine) write(items []*archive.Item) ([]archive.Mark, error) {
	if len(items) == 0 {
		return e.marks, nil
	}
	now := e.now()
	for _, item := range items {
		if err := e.out.Append(item, now); err != nil {
			return nil, outputError(err)
		}
	}
	marks, err := e.out.Sync()
	return marks, outputError(err)
}

// errOutput says that the output cannot be written for a reason that may pass.
var errOutput = errors.New("the output cannot be written")

// outputError marks what can pass: a full disk the way the store does, and a directory that is gone, read-only or out of order. Where the files do
// not hold what was committed, waiting is no help.
func outputError(err error) error {
	switch {
	case err == nil, errors.Is(err, archive.ErrMissing), errors.Is(err, archive.ErrShort), errors.Is(err, archive.ErrClosed):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
	}
	return fmt.Errorf("%w: %w", errOutput, err)
}
