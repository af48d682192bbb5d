//go:build !core

package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// GetURLStatus implements the RPC.
func (s *Service) GetURLStatus(ctx context.Context, r *urlfrontierpb.URLStatusRequest) (*urlfrontierpb.URLItem, error) {
	u, err := weburl.Parse(r.GetUrl())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if err := checkKey(r.GetKey()); err != nil {
		return nil, err
	}
	var status crawl.URLStatus
	err = s.with(ctx, r.GetCrawlID(), false, func(c Crawl) (err error) {
		status, err = c.URLStatus(ctx, u)
		return err
	})
	if isUnknown(err) {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("the URL is not known"))
	}
	if err != nil {
		return nil, rpcError(err)
	}
	if key := queueOf(r.GetKey(), u, r.GetUrl()); key != "" && key != u.Host() && key != status.Key {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("the URL is not in the queue of that key"))
	}
	return newItem(u, crawlID(r.GetCrawlID()), &status), nil
}

// newItem returns what is known of a URL. A completed one has no date and no metadata.
func newItem(u weburl.URL, id string, status *crawl.URLStatus) *urlfrontierpb.URLItem {
	info := &urlfrontierpb.URLInfo{Url: u.String(), Key: status.Key, CrawlID: id}
	known := &urlfrontierpb.KnownURLItem{Info: info}
	if !status.Completed {
		info.Metadata = newMetadata(status.Metadata)
		due := status.Due
		if due.IsZero() {
			due = status.Created // a discovered URL is due at once
		}
		known.RefetchableFromDate = toUnix(due)
	}
	return &urlfrontierpb.URLItem{
		Item: &urlfrontierpb.URLItem_Known{Known: known}, CreationDate: toUnix(status.Created),
	}
}

// listURLs calls yield for URLs of a queue, or of all if the key is empty, as c.ListURLs does.
func listURLs(ctx context.Context, c Crawl, key string, q crawl.URLQuery,
	yield func(weburl.URL, crawl.URLStatus) error) error {
	if key == "" {
		return c.ListURLs(ctx, q, yield)
	}
	skip, left := q.Start, q.Size
	q.Start, q.Size = 0, 0
	err := eachHost(ctx, c, key, "", func(host string) error {
		q.Host = host
		return c.ListURLs(ctx, q, func(u weburl.URL, status crawl.URLStatus) error {
			if skip > 0 {
				skip--
				return nil
			}
			if left--; left < 0 {
				return errListed
			}
			return yield(u, status)
		})
	})
	if errors.Is(err, errListed) {
		return nil
	}
	return err
}

// errListed ends a list that has what is wanted.
var errListed = errors.New("the list is complete")

// ListURLs implements the RPC.
func (s *Service) ListURLs(ctx context.Context, r *urlfrontierpb.ListUrlParams,
	stream *connect.ServerStream[urlfrontierpb.URLItem]) error {
	size := int(r.GetSize())
	if size == 0 {
		size = defaultPage
	}
	to, id, sent := callOf(ctx), crawlID(r.GetCrawlID()), 0
	to.mustRead(0)
	err := s.with(ctx, id, false, func(c Crawl) error {
		return listURLs(ctx, c, r.GetKey(), crawl.URLQuery{
			Start: int(r.GetStart()), Size: size, Filter: r.GetFilter(), IgnoreCase: r.GetIgnoreCase(),
		}, func(u weburl.URL, status crawl.URLStatus) error {
			if s.closing.Err() != nil {
				return errClosing()
			}
			if sent%100 == 0 {
				to.mustWrite(s.o.Limits.Send)
			}
			sent++
			err := stream.Send(newItem(u, id, &status))
			if sent%100 == 0 {
				to.mustWrite(0) // what comes next may take long to find
			}
			return err
		})
	})
	if isUnknown(err) {
		return nil
	}
	return rpcError(err)
}

// CountURLs implements the RPC.
func (s *Service) CountURLs(ctx context.Context, r *urlfrontierpb.CountUrlParams) (*urlfrontierpb.Long, error) {
	var n uint64
	q := crawl.URLQuery{Filter: r.GetFilter(), IgnoreCase: r.GetIgnoreCase()}
	err := s.with(ctx, r.GetCrawlID(), false, func(c Crawl) (err error) {
		if r.GetKey() == "" {
			n, err = c.CountURLs(ctx, q)
			return err
		}
		return eachHost(ctx, c, r.GetKey(), "", func(host string) error {
			q.Host = host
			urls, err := c.CountURLs(ctx, q)
			n += urls
			return err
		})
	})
	if err != nil && !isUnknown(err) {
		return nil, rpcError(err)
	}
	return &urlfrontierpb.Long{Value: n}, nil
}

// PurgeURLs implements the RPC: it deletes what was created more than some days ago, of one queue or of
// all.
func (s *Service) PurgeURLs(ctx context.Context, r *urlfrontierpb.PurgeUrlParams) (*urlfrontierpb.Long, error) {
	const mostDays = 100_000
	if r.GetDays() > mostDays {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("days is %d, at most %d are allowed",
			r.GetDays(), mostDays))
	}
	before := s.o.Now().Add(-time.Duration(r.GetDays()) * 24 * time.Hour)
	return s.delete(ctx, r.GetCrawlID(), r.GetKey(), crawl.Deletion{Before: before})
}
