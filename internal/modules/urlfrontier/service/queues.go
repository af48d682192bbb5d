//go:build !core

package service

import (
	"context"
	"errors"
	"math"
	"time"

	"connectrpc.com/connect"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
)

const (
	defaultPage = 100     // of a list whose size the client does not say
	maxPage     = 100_000 // queues of one list
)

// isUnknown reports whether an error says that there is no such crawl or queue.
func isUnknown(err error) bool {
	return errors.Is(err, ErrNoCrawl) || errors.Is(err, inspect.ErrUnknown)
}

// ListQueues implements the RPC.
func (s *Service) ListQueues(ctx context.Context, r *urlfrontierpb.Pagination) (*urlfrontierpb.QueueList, error) {
	size := min(int(r.GetSize()), maxPage)
	if size == 0 {
		size = defaultPage
	}
	var names []string
	err := s.with(ctx, r.GetCrawlID(), false, func(c Crawl) (err error) {
		names, err = c.ListQueues(ctx, crawl.QueueQuery{
			Start: int(r.GetStart()), Size: size, IncludeInactive: r.GetIncludeInactive(),
		})
		return err
	})
	if err != nil && !isUnknown(err) {
		return nil, rpcError(err)
	}
	return &urlfrontierpb.QueueList{
		Values: names, Start: r.GetStart(), Size: uint32(len(names)), CrawlID: crawlID(r.GetCrawlID()),
	}, nil
}

// GetStats implements the RPC: of one queue, or of a crawl.
func (s *Service) GetStats(ctx context.Context, r *urlfrontierpb.QueueWithinCrawlParams) (*urlfrontierpb.Stats, error) {
	var q crawl.QueueStats
	err := s.with(ctx, r.GetCrawlID(), false, func(c Crawl) (err error) {
		if r.GetKey() == "" {
			q, err = c.QueueStats(ctx, "")
			return err
		}
		return eachHost(ctx, c, r.GetKey(), "", func(host string) error {
			of, err := c.QueueStats(ctx, host)
			q.Queued, q.InProcess, q.Completed = q.Queued+of.Queued, q.InProcess+of.InProcess, q.Completed+of.Completed
			q.Queues, q.ActiveQueues = max(q.Queues, of.Queues), max(q.ActiveQueues, of.ActiveQueues)
			return err
		})
	})
	if err != nil && !isUnknown(err) {
		return nil, rpcError(err)
	}
	return &urlfrontierpb.Stats{
		Size: q.Queued, InProcess: uint32(min(q.InProcess, math.MaxUint32)), NumberOfQueues: q.Queues,
		Counts:  map[string]uint64{"completed": q.Completed, "active_queues": q.ActiveQueues},
		CrawlID: crawlID(r.GetCrawlID()),
	}, nil
}

// DeleteQueue implements the RPC.
func (s *Service) DeleteQueue(
	ctx context.Context, r *urlfrontierpb.QueueWithinCrawlParams,
) (*urlfrontierpb.Long, error) {
	if r.GetKey() == "" {
		return &urlfrontierpb.Long{}, nil
	}
	return s.delete(ctx, r.GetCrawlID(), r.GetKey(), crawl.Deletion{})
}

// delete deletes URLs of a crawl, of all queues if the key is empty.
func (s *Service) delete(ctx context.Context, id, key string, d crawl.Deletion) (*urlfrontierpb.Long, error) {
	var urls uint64
	err := s.with(ctx, id, false, func(c Crawl) (err error) {
		if key == "" {
			urls, err = c.Delete(ctx, d)
			return err
		}
		return eachHost(ctx, c, key, "", func(host string) error {
			d.Host = host
			n, err := c.Delete(ctx, d)
			urls += n
			return err
		})
	})
	if err != nil && !isUnknown(err) {
		return nil, rpcError(err)
	}
	return &urlfrontierpb.Long{Value: urls}, nil
}

// setQueue changes the settings of a queue. The error is inspect.ErrUnknown or ErrNoCrawl if it is not
// known.
func (s *Service) setQueue(ctx context.Context, id, key string, change func(*crawl.QueueSettings)) error {
	return s.with(ctx, id, false, func(c Crawl) error {
		return eachHost(ctx, c, key, "", func(host string) error { return c.SetQueue(ctx, host, change) })
	})
}

// BlockQueueUntil implements the RPC. An unknown queue is no error.
func (s *Service) BlockQueueUntil(
	ctx context.Context, r *urlfrontierpb.BlockQueueParams,
) (*urlfrontierpb.Empty, error) {
	err := s.setQueue(ctx, r.GetCrawlID(), r.GetKey(), func(q *crawl.QueueSettings) {
		q.BlockedUntil = fromUnix(r.GetTime())
	})
	if err != nil && !isUnknown(err) {
		return nil, rpcError(err)
	}
	return &urlfrontierpb.Empty{}, nil
}

// SetDelay implements the RPC. An unknown queue is no error. Without a key it sets the delay of all
// queues that have none of their own, of all crawls, whatever crawl it names.
func (s *Service) SetDelay(ctx context.Context, r *urlfrontierpb.QueueDelayParams) (*urlfrontierpb.Empty, error) {
	delay := time.Duration(r.GetDelayRequestable()) * time.Second
	var err error
	if r.GetKey() == "" {
		err = s.crawls.SetDefaultDelay(ctx, delay)
	} else {
		err = s.setQueue(ctx, r.GetCrawlID(), r.GetKey(), func(q *crawl.QueueSettings) { q.Delay = &delay })
	}
	if err != nil && !isUnknown(err) {
		return nil, rpcError(err)
	}
	return &urlfrontierpb.Empty{}, nil
}

// SetCrawlLimit implements the RPC. An unknown queue is an error.
func (s *Service) SetCrawlLimit(ctx context.Context, r *urlfrontierpb.CrawlLimitParams) (*urlfrontierpb.Empty, error) {
	err := s.setQueue(ctx, r.GetCrawlID(), r.GetKey(), func(q *crawl.QueueSettings) { q.Limit = uint64(r.GetLimit()) })
	if isUnknown(err) {
		return nil, connect.NewError(connect.CodeUnknown, errors.New("there is no such queue"))
	}
	if err != nil {
		return nil, rpcError(err)
	}
	return &urlfrontierpb.Empty{}, nil
}
