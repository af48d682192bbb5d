package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
)

// retryAll puts URLs of a host back into their queues, or of all.
func (s *Server) retryAll(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	shards := s.allShards()
	if host := hostOfBody(body); host != "" {
		shards = []cluster.Shard{s.shardOf(host)}
	}
	parts := make(map[cluster.Shard]*part)
	for _, shard := range shards {
		p := partOf(r, body)
		if p.body = retryOf(body, shard); p.body != nil {
			parts[shard] = &p
		}
	}
	t := s.newStream(w, r)
	t.end(s.retryIn(r.Context(), t, parts))
}

// retryOf returns the command for one shard; nil: none of its URLs is meant.
func retryOf(body []byte, shard cluster.Shard) []byte {
	var q Retry
	if json.Unmarshal(body, &q) != nil || len(q.Fetched) == 0 {
		return body // the engine says what is wrong
	}
	q.Fetched = slices.DeleteFunc(q.Fetched, func(f FetchedIn) bool { return f.Shard != nil && *f.Shard != int(shard) })
	if len(q.Fetched) == 0 {
		return nil
	}
	own, err := json.Marshal(q)
	if err != nil {
		return body
	}
	return own
}

// retryIn writes the sums of the reports of shards.
func (s *Server) retryIn(ctx context.Context, t *stream, parts map[cluster.Shard]*part) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	last := make(map[cluster.Shard]RetryReport)
	var lacking *Incomplete
	var wrong error
	done := make(chan struct{})
	go func() {
		defer close(done)
		var failed map[cluster.Shard]error
		shards := slices.Collect(maps.Keys(parts))
		_, failed, wrong = gather(ctx, shards, func(ctx context.Context, shard cluster.Shard) (struct{}, error) {
			return struct{}{}, s.retryShard(ctx, shard, parts[shard], func(r RetryReport) {
				mu.Lock()
				defer mu.Unlock()
				last[shard] = r
			})
		})
		lacking = missing(failed)
	}()
	sum := func() (sum RetryReport) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range last {
			sum.Inspected, sum.Back = sum.Inspected+r.Inspected, sum.Back+r.Back
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
func (s *Server) retryShard(ctx context.Context, shard cluster.Shard, p *part, each func(RetryReport)) error {
	response, err := s.toShard(ctx, shard, p)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	for reports := json.NewDecoder(response.Body); ; {
		var report RetryReport
		switch err := reports.Decode(&report); {
		case err == io.EOF:
			return ofShard(shard, io.ErrUnexpectedEOF)
		case err != nil:
			return ofShard(shard, err)
		}
		each(report)
		switch {
		case report.Error != "":
			return ofShard(shard, errors.New(report.Error))
		case report.Done:
			return nil
		}
	}
}
