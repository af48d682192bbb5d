//go:build !core

package journal

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal/records"
	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/storage"
)

// discoveriesVersion is the version of the messages with URLs for other shards. Version 1 has no scope. Version 2 has
// no URLs that name their seeds.
const discoveriesVersion = 3

// messageURLs bounds the bytes of URLs and metadata in one message with URLs, unless one alone has
// more.
const messageURLs = 256 << 10

// discoveryBytes estimates what a discovery takes in a message.
func discoveryBytes(d *storage.Discovery) int {
	return len(d.Found.URL.String()) + len(d.Found.Stripped) + len(d.Found.Metadata) + len(d.Via) + 64
}

// appendDiscoveries appends a message with URLs for another shard: version, the scope that they were
// judged by, the pages that they were found on, and the discoveries as in a record, where the page is a
// number. FORMAT.md describes its bytes.
func appendDiscoveries(b []byte, scope uint64, all []storage.Discovery) ([]byte, error) {
	vias := make(map[string]uint32)
	var texts []string
	found := make([]storage.Found, len(all))
	for i := range all {
		d := &all[i]
		found[i] = d.Found
		found[i].ViaHost, found[i].ViaOrdinal = storage.NoHost, 0
		if d.Via == "" {
			continue
		}
		n, known := vias[d.Via]
		if !known {
			n = uint32(len(texts))
			vias[d.Via], texts = n, append(texts, d.Via)
		}
		found[i].ViaHost, found[i].ViaOrdinal = 1, n
	}
	version := byte(2)
	if records.AreNewer(found) {
		version = discoveriesVersion
	}
	b = append(b, version)
	b = binary.AppendUvarint(b, scope)
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, via := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(via))), via...)
	}
	return records.AppendFound(b, found)
}

// decodeDiscoveries is the inverse of appendDiscoveries. Fingerprints are missing.
func decodeDiscoveries(b []byte) (scope uint64, all []storage.Discovery, err error) {
	d := wire.NewDecoder(b)
	switch version := d.Byte(); {
	case !d.OK() || version == 0:
		return 0, nil, fmt.Errorf("%w: it has no version", storage.ErrRecord)
	case version > discoveriesVersion:
		return 0, nil, fmt.Errorf("a message with URLs: %w (its version is %d, this amble reads up to %d): "+
			"use a newer amble on this node", storage.ErrNewer, version, discoveriesVersion)
	case version > 1:
		scope = d.Uvarint()
	}
	var vias []string
	for n := d.UvarintMax(uint64(d.Len())); n > 0 && d.OK(); n-- {
		vias = append(vias, string(d.Long()))
	}
	if !d.OK() {
		return 0, nil, fmt.Errorf("%w: %w", storage.ErrRecord, d.Err())
	}
	found, err := records.DecodeFound(d.Rest())
	if err != nil {
		return 0, nil, err
	}
	all = make([]storage.Discovery, len(found))
	for i := range found {
		f := &found[i]
		if f.ViaHost != storage.NoHost {
			if f.ViaHost != 1 || uint64(f.ViaOrdinal) >= uint64(len(vias)) {
				return 0, nil, fmt.Errorf("%w: a URL was found on a page that is missing", storage.ErrRecord)
			}
			all[i].Via = vias[f.ViaOrdinal]
		}
		f.ViaHost, f.ViaOrdinal = storage.NoHost, 0
		all[i].Found = *f
	}
	return scope, all, nil
}

// Publish is PublishBy without a scope.
func (s *Shard) Publish(number uint64, all []storage.Discovery) error {
	return s.PublishBy(0, number, all)
}

// PublishBy makes URLs durable that belong to other shards. scope is the sequence of the newest scope
// seeds that they were judged by. number is that of the commit that they come from: the same URLs under
// the same number are taken once.
func (s *Shard) PublishBy(scope, number uint64, all []storage.Discovery) error {
	byShard := make(map[int][]storage.Discovery)
	var targets []int
	for i := range all {
		n := int(cluster.ShardOf(all[i].Found.URL.Host(), s.o.Shards))
		if byShard[n] == nil {
			targets = append(targets, n)
		}
		byShard[n] = append(byShard[n], all[i])
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Timeout)
	defer cancel()
	var acks []jetstream.PubAckFuture
	for _, to := range targets {
		for part, list := 0, byShard[to]; len(list) > 0; part++ {
			n, size := 0, 0
			for n < len(list) && (n == 0 || size < messageURLs) {
				size += discoveryBytes(&list[n])
				n++
			}
			data, err := appendDiscoveries(nil, scope, list[:n])
			if err != nil {
				return fmt.Errorf("publish URLs for shard %d: %w", to, err)
			}
			list = list[n:]
			id := fmt.Sprintf("%d.%d.%d.%d.%d.%x", s.n, s.epoch, number, to, part, crc32.Checksum(data, castagnoli()))
			ack, err := s.js.PublishMsgAsync(&nats.Msg{Subject: s.subject("in", to), Data: data},
				jetstream.WithMsgID(id),
				jetstream.WithExpectStream(s.o.Prefix+"_in"))
			if err != nil {
				return fmt.Errorf("publish URLs for shard %d: %w", to, downError(err))
			}
			acks = append(acks, ack)
		}
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return fmt.Errorf("publish URLs for other shards: %w", downError(err))
		case <-ctx.Done():
			return fmt.Errorf("publish URLs for other shards: %w", downError(ctx.Err()))
		}
	}
	return nil
}

// Incoming gives the URLs of Messages to take.
func (s *Shard) Incoming(ctx context.Context, after uint64,
	take func(sequence uint64, all []storage.Discovery) error) error {
	return s.Messages(ctx, after, func(m *Message) error {
		if m.IsMark {
			return nil
		}
		return take(m.Sequence, m.URLs)
	})
}

// Message is what other shards have published for one.
type Message struct {
	Sequence uint64
	IsMark   bool   // it comes from [Streams.Mark], and has nothing else
	Scope    uint64 // the sequence of the newest scope seeds that the URLs were judged by; 0: none
	URLs     []storage.Discovery
}

// Mark publishes a mark for all shards. Whoever has read it has read all that was published before. Only
// the newest is kept.
func (s *Streams) Mark(ctx context.Context) (sequence uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	ack, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: s.markSubject(), Header: nats.Header{
		jetstream.MsgRollup: {jetstream.MsgRollupSubject},
	}}, jetstream.WithExpectStream(s.o.Prefix+"_in"))
	if err != nil {
		return 0, fmt.Errorf("publish a mark: %w", downError(err))
	}
	return ack.Sequence, nil
}

func (s *Streams) markSubject() string { return s.o.Prefix + ".in.mark" }

// Messages gives the messages that other shards have published for this one to take, behind a sequence,
// until the context or the run ends. It returns the first error of take, or ErrNewer, ErrRecord,
// ErrLogDown.
func (s *Shard) Messages(ctx context.Context, after uint64, take func(*Message) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	return s.follow(ctx, s.inArrivals, s.subject("in", s.n), after,
		func(m *message) error { return s.takeMessage(m, take) },
		func(sequence uint64) error { return take(&Message{Sequence: sequence, IsMark: true}) })
}

// MessagesTo is Messages up to a mark, given its sequence, which it does not give.
func (s *Shard) MessagesTo(ctx context.Context, after, mark uint64, take func(*Message) error) error {
	if after >= mark {
		return fmt.Errorf("%w (message %d for shard %d, the last one is %d)", storage.ErrAhead, after, s.n, mark)
	}
	subject := s.subject("in", s.n)
	end, _, err := s.marked(ctx, subject, mark)
	if err == nil {
		err = s.read(ctx, s.inReads, subject, span{after, min(end, mark), mark},
			func(m *message) error { return s.takeMessage(m, take) })
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", subject, err)
	}
	return nil
}

func (s *Shard) takeMessage(m *message, take func(*Message) error) (err error) {
	in := Message{Sequence: m.Sequence}
	if in.Scope, in.URLs, err = decodeDiscoveries(m.Data); err != nil {
		return &storage.MessageError{Kind: kindIn, Sequence: m.Sequence, Err: err}
	}
	return take(&in)
}

// forgetIncoming deletes the messages for this shard up to a sequence.
func (s *Shard) forgetIncoming(ctx context.Context, upTo uint64) error {
	if upTo == 0 || upTo == math.MaxUint64 {
		return nil
	}
	return downError(s.in.Purge(ctx, jetstream.WithPurgeSubject(s.subject("in", s.n)),
		jetstream.WithPurgeSequence(upTo+1)))
}
