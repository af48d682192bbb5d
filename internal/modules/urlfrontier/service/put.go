//go:build !core

package service

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Names of the RPCs with puts, in metrics.
const (
	rpcPutURLs, rpcPutDiscovered = "PutURLs", "PutDiscovered"
)

// PutURLs implements the RPC: each item is acknowledged, in order, when it is on disk.
func (s *Service) PutURLs(ctx context.Context,
	stream *connect.BidiStream[urlfrontierpb.URLItem, urlfrontierpb.AckMessage]) error {
	fetcher := callOf(ctx).fetcher
	return s.newIntake(ctx, rpcPutURLs, s.o.Limits.Items, func() (*message, error) {
		item, err := stream.Receive()
		if err != nil {
			return nil, err
		}
		m := &message{
			id: item.GetID(), size: messageBytes, statuses: make([]urlfrontierpb.AckMessage_Status, 1),
		}
		info, known := item.GetDiscovered().GetInfo(), item.GetKnown()
		if known != nil {
			info = known.GetInfo()
		}
		if m.id == "" {
			m.id = info.GetUrl()
		}
		if p := s.take(m, 0, rpcPutURLs, info); p != nil && known != nil {
			p.put.Known, p.put.Due, p.put.Fetcher = true, fromUnix(known.GetRefetchableFromDate()), fetcher
		}
		return m, nil
	}, func(m *message) error {
		return stream.Send(&urlfrontierpb.AckMessage{ID: m.id, Status: m.statuses[0]})
	}).run(ctx)
}

// PutDiscovered implements the RPC: each batch is acknowledged, in order, when it is on disk.
func (s *Service) PutDiscovered(ctx context.Context,
	stream *connect.BidiStream[urlfrontierpb.DiscoveredBatch, urlfrontierpb.BatchAck]) error {
	return s.newIntake(ctx, rpcPutDiscovered, s.o.Limits.Batches, func() (*message, error) {
		batch, err := stream.Receive()
		if err != nil {
			return nil, err
		}
		items := batch.GetItems()
		m := &message{
			id: batch.GetID(), size: messageBytes + int64(len(items)*4),
			statuses: make([]urlfrontierpb.AckMessage_Status, len(items)),
		}
		for n, info := range items {
			s.take(m, n, rpcPutDiscovered, info)
		}
		return m, nil
	}, func(m *message) error {
		return stream.Send(&urlfrontierpb.BatchAck{ID: m.id, Statuses: m.statuses})
	}).run(ctx)
}

// take adds an item to the puts of its message. It returns nil if that item is not taken.
func (s *Service) take(m *message, index int, rpc string, info *urlfrontierpb.URLInfo) *itemPut {
	put, skipped, detail := newPut(info)
	if skipped != itemAccepted {
		m.set(index, skipped)
		var counts [len(outcomeNames)]int
		counts[skipped]++
		s.o.Metrics.count(rpc, &counts)
		s.skipped.skipped(s.o.Now(), skipped, info.GetUrl(), info.GetKey(), detail)
		return nil
	}
	m.size += itemBytes + bytesOf(info)
	m.puts = append(m.puts, itemPut{crawl: crawlID(info.GetCrawlID()), index: index, put: put})
	return &m.puts[len(m.puts)-1]
}

// messageBytes and itemBytes are what a message and an item take in memory besides their texts, here and on their way
// through the crawl.
const messageBytes, itemBytes = 200, 600

// bytesOf returns what the texts of an item take in memory, decoded and encoded for the store.
func bytesOf(info *urlfrontierpb.URLInfo) (n int64) {
	n = int64(len(info.GetUrl()) + len(info.GetKey()) + len(info.GetCrawlID()))
	for key, values := range info.GetMetadata() {
		n += 100 + int64(len(key))
		for _, v := range values.GetValues() {
			n += 20 + int64(len(v))
		}
	}
	return 2 * n
}

// newPut makes a put of what a client says of a URL. If that cannot be, skipped is why, and not
// itemAccepted.
func newPut(info *urlfrontierpb.URLInfo) (p crawl.Put, skipped outcome, err error) {
	u, err := weburl.Parse(info.GetUrl())
	if err != nil {
		return p, itemURL, err
	}
	if err := checkKey(info.GetKey()); err != nil {
		return p, itemKey, err
	}
	p.URL, p.Key = u, queueOf(info.GetKey(), u, info.GetUrl())
	if list := info.GetMetadata(); len(list) > 0 {
		size := 0
		p.Metadata = make(storage.Metadata, len(list))
		for key, values := range list {
			size += len(key) + lengths
			for _, v := range values.GetValues() {
				size += len(v) + lengths
			}
			p.Metadata[key] = values.GetValues()
		}
		if size > storage.MaxMetadata {
			return p, itemMetadata, storage.ErrMetadata
		}
	}
	return p, itemAccepted, nil
}

// lengths is the most bytes that the length and the number of values of one text take in the store.
const lengths = 6

// isCrawlID reports whether a crawl id was refused.
func isCrawlID(err error) bool { return errors.Is(err, ErrCrawlID) }

// maxUnix is the last second that a date may name: the end of the year 9999.
const maxUnix = 253_402_300_799

// fromUnix converts a date of the protocol; 0 is the zero time.
func fromUnix(s uint64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(min(s, maxUnix)), 0)
}

// toUnix is the inverse of fromUnix.
func toUnix(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.Unix(), 1))
}
