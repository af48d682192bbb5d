//go:build !core

package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// retryOf puts URLs of a host back into their queues, or of all shards.
func retryOf(ctx context.Context, d Division, t *Stream, q *Retry) error {
	shards := allShards(d)
	if q.Host != "" {
		shards = []int{d.ShardOf(q.Host)}
	}
	parts := make(map[int]*Request)
	for _, shard := range shards {
		own := *q
		if own.Fetched = fetchedIn(q.Fetched, shard); len(q.Fetched) > 0 && len(own.Fetched) == 0 {
			continue // none of its URLs is meant
		}
		body, err := json.Marshal(own)
		if err != nil {
			return errQuery{err}
		}
		parts[shard] = asked(ctx)
		parts[shard].Body = body
	}
	return retryIn(ctx, d, t, parts)
}

// fetchedIn returns the spans that are for a shard.
func fetchedIn(spans []FetchedIn, shard int) []FetchedIn {
	return slices.DeleteFunc(slices.Clone(spans), func(f FetchedIn) bool { return f.Shard != nil && *f.Shard != shard })
}

// retryIn writes the sums of the reports of shards.
func retryIn(ctx context.Context, d Division, t *Stream, parts map[int]*Request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	last := make(map[int]RetryReport)
	var lacking *Incomplete
	var wrong error
	done := make(chan struct{})
	go func() {
		defer close(done)
		var failed map[int]error
		_, failed, wrong = Gather(ctx, SortedKeys(parts), func(ctx context.Context, shard int) (struct{}, error) {
			return struct{}{}, retryShard(ctx, d, shard, parts[shard], func(report RetryReport) {
				mu.Lock()
				defer mu.Unlock()
				last[shard] = report
			})
		})
		lacking = MissingShards(failed)
	}()
	sum := func() (sum RetryReport) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range last {
			sum.Inspected, sum.Back, sum.Dropped = sum.Inspected+r.Inspected, sum.Back+r.Back, sum.Dropped+r.Dropped
		}
		return sum
	}
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			report := sum()
			if err := errors.Join(t.Lines.Write(&report), t.flush()); err != nil {
				cancel()
				<-done
				return err
			}
		case <-done:
			report := sum()
			switch {
			case wrong != nil && !t.begun:
				return wrong
			case wrong != nil:
				report.Error = wrong.Error()
			case lacking != nil:
				report.Error = wholly(lacking, nil).Error()
			default:
				report.Done = true
			}
			return t.Lines.Write(&report)
		}
	}
}

// retryShard gives the command to a shard, and reads its reports.
func retryShard(ctx context.Context, d Division, shard int, r *Request, each func(RetryReport)) error {
	response, err := AskShard(ctx, d, shard, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for reports := json.NewDecoder(response.Body); ; {
		var report RetryReport
		switch err := reports.Decode(&report); {
		case err == io.EOF:
			return OfShard(shard, io.ErrUnexpectedEOF)
		case err != nil:
			return OfShard(shard, err)
		}
		each(report)
		switch {
		case report.Error != "":
			return OfShard(shard, errors.New(report.Error))
		case report.Done:
			return nil
		}
	}
}
