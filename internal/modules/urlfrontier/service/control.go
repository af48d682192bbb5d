//go:build !core

package service

import (
	"context"
	"errors"
	"log/slog"

	"connectrpc.com/connect"

	"github.com/amble-crawler/amble/internal/modules/urlfrontier"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
)

// ListNodes implements the RPC. There is one node.
func (s *Service) ListNodes(context.Context, *urlfrontierpb.Empty) (*urlfrontierpb.StringList, error) {
	return &urlfrontierpb.StringList{Values: []string{s.Address()}}, nil
}

// ListCrawls implements the RPC. The default crawl is listed if it has URLs.
func (s *Service) ListCrawls(ctx context.Context, _ *urlfrontierpb.Local) (*urlfrontierpb.StringList, error) {
	ids, err := s.crawls.IDs(ctx)
	if err != nil {
		return nil, rpcError(err)
	}
	list := &urlfrontierpb.StringList{}
	for _, id := range ids {
		if id == urlfrontier.DefaultCrawl {
			isEmpty := false
			err := s.with(ctx, id, false, func(c Crawl) error {
				q, err := c.QueueStats(ctx, "")
				isEmpty = q.Queues == 0
				return err
			})
			if err != nil && !isUnknown(err) {
				return nil, rpcError(err)
			}
			if isEmpty || err != nil {
				continue
			}
		}
		list.Values = append(list.Values, id)
	}
	return list, nil
}

// DeleteCrawl implements the RPC.
func (s *Service) DeleteCrawl(ctx context.Context, r *urlfrontierpb.DeleteCrawlMessage) (*urlfrontierpb.Long, error) {
	urls, err := s.crawls.Delete(ctx, crawlID(r.GetValue()))
	if err != nil && !isUnknown(err) {
		return nil, rpcError(err)
	}
	return &urlfrontierpb.Long{Value: urls}, nil
}

// SetActive implements the RPC. The default crawl keeps the state of the node over restarts.
func (s *Service) SetActive(ctx context.Context, r *urlfrontierpb.Active) (*urlfrontierpb.Empty, error) {
	set := func(c Crawl) error { return c.SetActive(ctx, r.GetState()) }
	err := s.with(ctx, urlfrontier.DefaultCrawl, !r.GetState(), set)
	if err == nil || isUnknown(err) {
		s.inactive.Store(!r.GetState())
		err = s.each(ctx, set)
	}
	if err != nil {
		return nil, rpcError(err)
	}
	return &urlfrontierpb.Empty{}, nil
}

// GetActive implements the RPC.
func (s *Service) GetActive(context.Context, *urlfrontierpb.Local) (*urlfrontierpb.Boolean, error) {
	return &urlfrontierpb.Boolean{State: !s.inactive.Load()}, nil
}

// SetLogLevel implements the RPC. There is one level, that of the process, whatever the package.
func (s *Service) SetLogLevel(_ context.Context, r *urlfrontierpb.LogLevelParams) (*urlfrontierpb.Empty, error) {
	if s.o.SetLevel == nil {
		return nil, connect.NewError(connect.CodeUnimplemented, errors.New("the level of the log cannot be set"))
	}
	level := slog.LevelDebug
	switch r.GetLevel() {
	case urlfrontierpb.LogLevelParams_INFO:
		level = slog.LevelInfo
	case urlfrontierpb.LogLevelParams_WARN:
		level = slog.LevelWarn
	case urlfrontierpb.LogLevelParams_ERROR:
		level = slog.LevelError
	}
	s.o.Log.Warn("a URLFrontier client sets the level of the log", "level", level, "package", shortened(r.GetPackage()))
	s.o.SetLevel(level)
	return &urlfrontierpb.Empty{}, nil
}
