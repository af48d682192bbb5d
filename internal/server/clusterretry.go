package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
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
	t := s.newStream(w, r)
	t.end(s.retryIn(r.Context(), t, shards, partOf(r, body)))
}

// retryIn writes the sums of the reports of shards.
func (s *Server) retryIn(ctx context.Context, t *stream, shards []cluster.Shard, p part) error {
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
		_, failed, wrong = gather(ctx, shards, func(ctx context.Context, shard cluster.Shard) (struct{}, error) {
			return struct{}{}, s.retryShard(ctx, shard, &p, func(r RetryReport) {
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
