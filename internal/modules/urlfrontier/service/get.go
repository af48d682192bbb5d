//go:build !core

package service

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/remote"
	"github.com/amble-crawler/amble/internal/modules/urlfrontier"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/storage"
)

const (
	// defaultVisibility is how long a URL is held for a client that does not say.
	defaultVisibility = 30 * time.Second
	// maxVisited is the most crawls that one GetURLs looks at.
	maxVisited = 64
	// maxVisitedHosts is the most hosts of a queue that one GetURLs looks at.
	maxVisitedHosts = 1000
)

// GetURLs implements the RPC. URLs whose message could not be sent are given back.
func (s *Service) GetURLs(ctx context.Context, r *urlfrontierpb.GetParams,
	stream *connect.ServerStream[urlfrontierpb.URLInfo]) error {
	if s.inactive.Load() {
		return nil
	}
	callOf(ctx).mustRead(0)
	h, err := s.newHandout(ctx, r, stream.Send)
	if h == nil || err != nil {
		return rpcError(err)
	}
	for _, id := range h.crawls {
		if h.isFull() || s.closing.Err() != nil {
			break
		}
		err := s.with(ctx, id, false, func(c Crawl) error { return h.from(ctx, id, c) })
		switch {
		case errors.Is(err, ErrNoCrawl), errors.Is(err, inspect.ErrUnknown): // it was deleted, or knows no such queue
		case errors.Is(err, crawl.ErrNotRunning): // it is closing
		case err != nil:
			return rpcError(err)
		}
	}
	return nil
}

// handout is one GetURLs.
type handout struct {
	s       *Service
	call    *call
	send    func(*urlfrontierpb.URLInfo) error
	crawls  []string // to look at, in order
	request remote.Request
	key     string          // of the only queue; empty: any
	queues  int             // most; 0: any number
	seen    map[string]bool // queues, by crawl and key
	sent    int
}

// newHandout returns what a GetURLs is to do; nil: nothing.
func (s *Service) newHandout(ctx context.Context, r *urlfrontierpb.GetParams,
	send func(*urlfrontierpb.URLInfo) error) (*handout, error) {
	h := &handout{
		s: s, call: callOf(ctx), send: send, key: r.GetKey(), queues: int(r.GetMaxQueues()),
		seen: make(map[string]bool),
	}
	perQueue := int(r.GetMaxUrlsPerQueue())
	if perQueue == 0 {
		perQueue = s.o.Limits.Lease
	}
	visibility := defaultVisibility
	if seconds := r.GetDelayRequestable(); seconds > 0 {
		visibility = min(time.Duration(seconds)*time.Second, remote.MaxVisibility)
	}
	h.request = remote.Request{
		Fetcher: h.call.fetcher, Visibility: visibility, PerHost: min(perQueue, s.o.Limits.Lease), Bare: true,
	}
	if err := checkKey(h.key); err != nil {
		return nil, err
	}
	_, isOne := r.GetItem().(*urlfrontierpb.GetParams_CrawlID)
	switch {
	case isOne:
		h.crawls = []string{crawlID(r.GetCrawlID())}
	case r.GetItem() == nil && r.GetKey() != "": // the reference implementation refuses that
		h.crawls = []string{urlfrontier.DefaultCrawl}
	default:
		all, err := s.crawls.IDs(ctx)
		if err != nil || len(all) == 0 {
			return nil, err
		}
		first := int(s.next.Add(1) % uint32(len(all)))
		all = append(all[first:len(all):len(all)], all[:first]...)
		h.crawls = all[:min(len(all), maxVisited)]
	}
	return h, nil
}

// isFull reports whether the client has what it wants.
func (h *handout) isFull() bool {
	return h.sent >= h.s.o.Limits.Lease || h.key == "" && h.queues > 0 && len(h.seen) >= h.queues
}

// from hands out URLs of a crawl.
func (h *handout) from(ctx context.Context, id string, c Crawl) error {
	if h.key == "" {
		return h.lease(ctx, id, c, h.request)
	}
	visited := 0
	err := eachHost(ctx, c, h.key, h.s.turns.of(id+" "+h.key), func(host string) error {
		if visited++; h.isFull() || visited > maxVisitedHosts {
			return errListed
		}
		h.s.turns.note(id+" "+h.key, host)
		r := h.request
		r.Host = host
		return h.lease(ctx, id, c, r)
	})
	if errors.Is(err, errListed) {
		return nil
	}
	return err
}

// lease hands out what a crawl has for a request.
func (h *handout) lease(ctx context.Context, id string, c Crawl, request remote.Request) error {
	for !h.isFull() {
		r := request
		r.N = min(remote.MaxLeaseCount, h.s.o.Limits.Lease-h.sent)
		if h.queues > 0 && h.key == "" {
			r.Hosts = h.queues - len(h.seen)
			r.N = int(min(int64(r.N), int64(r.Hosts)*int64(r.PerHost)))
		}
		leases, err := c.Lease(ctx, r)
		if err != nil {
			return err
		}
		if err := h.deliver(ctx, id, c, leases); err != nil {
			return err
		}
		if len(leases) == 0 { // else others may have been read from the disk meanwhile
			return nil
		}
	}
	return nil
}

// sentTogether is how many URLs leave in one write.
const sentTogether = 64

// deliver sends leases to the client. What cannot be sent is given back, except for what was written
// just before an error: it may have reached the client, and is held until its deadline.
func (h *handout) deliver(ctx context.Context, id string, c Crawl, leases []remote.Lease) error {
	for len(leases) > 0 {
		n := min(len(leases), sentTogether)
		h.call.mustWrite(h.s.o.Limits.Send)
		err := h.call.together(func() error {
			for i := range leases[:n] {
				l := &leases[i]
				if err := h.send(&urlfrontierpb.URLInfo{
					Url: l.URL.String(), Key: l.Key, CrawlID: id, Metadata: newMetadata(l.Metadata),
				}); err != nil {
					n = i
					return err
				}
				h.seen[id+" "+l.Key] = true
			}
			return nil
		})
		h.sent += n
		h.s.o.Metrics.urls.Add(float64(n))
		if leases = leases[n:]; err != nil {
			return errors.Join(err, h.putBack(context.WithoutCancel(ctx), c, leases))
		}
	}
	return nil
}

// putBack ends leases that never reached the client.
func (h *handout) putBack(ctx context.Context, c Crawl, leases []remote.Lease) error {
	back := make([]remote.Report, len(leases))
	for i := range leases {
		back[i] = remote.Report{Fetcher: h.request.Fetcher, ID: leases[i].ID, NotDone: true}
	}
	_, err := c.Report(ctx, back)
	return err
}

// newMetadata returns metadata as messages have them.
func newMetadata(m storage.Metadata) map[string]*urlfrontierpb.StringList {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]*urlfrontierpb.StringList, len(m))
	for key, values := range m {
		out[key] = &urlfrontierpb.StringList{Values: values}
	}
	return out
}
