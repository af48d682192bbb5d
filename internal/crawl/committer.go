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

// commitAll is the committer: it commits one job after the other, at once.
func (r *run) commitAll(ctx context.Context) {
	for j := range r.toCommit {
		j.err = r.commit(ctx, j)
		for errors.Is(j.err, storage.ErrNoSpace) && r.pause(ctx, j.err) {
			j.err = r.commit(ctx, j)
		}
		r.committed <- j
	}
}

// pause says that the disk is full and waits before the next try.
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

// commit makes a job durable: first the output, then the transaction that
// counts it. After an error both are as before.
func (r *run) commit(ctx context.Context, j *job) error {
	started := time.Now()
	if err := r.checkRoom(); err != nil {
		return err
	}
	marks, err := r.write(j.lines)
	if err != nil {
		return err
	}
	j.setMark(MarkOutput, encodeMarks(marks))
	j.setMark(storage.MarkLedger, storage.EncodePlace(j.place))
	if j.result, err = r.store.Commit(&j.batch); err != nil {
		if back := r.out.Rollback(r.marks); back != nil {
			return fmt.Errorf("%v; and take back the output: %w", err, back)
		}
		return r.roomError(err)
	}
	r.marks = marks
	r.tally.commits.Add(1)
	took := time.Since(started)
	if r.observer != nil {
		r.observer.Committed(took, len(j.batch.Found)+len(j.batch.Done))
	}
	if took > time.Second {
		r.log.Debug("slow commit", "duration", took, "found", len(j.batch.Found), "done", len(j.batch.Done))
	}
	return nil
}

// write appends lines to the output and makes them durable.
func (r *run) write(lines [][]byte) ([]archive.Mark, error) {
	if len(lines) == 0 {
		return r.marks, nil
	}
	for _, line := range lines {
		if err := r.out.Append(line); err != nil {
			return nil, outputError(err)
		}
	}
	marks, err := r.out.Sync()
	return marks, outputError(err)
}

// outputError marks a full disk the way the store does.
func outputError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", storage.ErrNoSpace, err)
	}
	return err
}
