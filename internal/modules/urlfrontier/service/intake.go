//go:build !core

package service

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
)

// maxPuts is about how many URLs are committed together. One message may have more.
const maxPuts = 5000

// message is what a client has sent and what it gets for it.
type message struct {
	id       string
	size     int64 // bytes of memory that it takes
	statuses []urlfrontierpb.AckMessage_Status
	puts     []itemPut // the items that the crawls decide about
}

// itemPut is an item of a message.
type itemPut struct {
	crawl string
	index int // in the message's statuses
	put   crawl.Put
}

// set sets what became of an item.
func (m *message) set(index int, o outcome) { m.statuses[index] = o.status() }

// intake takes in the messages of one stream: a reader reads them while earlier ones are committed and
// acknowledged, in the order in which they came.
type intake struct {
	s       *Service
	call    *call
	rpc     string
	receive func() (*message, error)
	send    func(*message) error

	claimed int64         // for the message that is being read; the reader's
	slots   chan struct{} // has one for each message that is not acknowledged
	ready   chan *message // have been read; closed by the reader at its end
	ended   error         // why the reader ended, set before ready is closed
	held    atomic.Int64  // bytes of the budget that it has
	freed   chan struct{} // has one when bytes were released
}

// newIntake returns the intake of a stream that may have most messages that are not acknowledged.
func (s *Service) newIntake(ctx context.Context, rpc string, most int, receive func() (*message, error),
	send func(*message) error) *intake {
	return &intake{
		s: s, call: callOf(ctx), rpc: rpc, receive: receive, send: send, slots: make(chan struct{}, most),
		ready: make(chan *message, most), freed: make(chan struct{}, 1),
	}
}

// run takes in the stream until the client ends it, it fails, or the service closes. In the last case
// what was read is committed and acknowledged before.
func (i *intake) run(ctx context.Context) error {
	reading, end := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		i.read(reading)
	}()
	defer context.AfterFunc(i.s.closing, i.call.stopReading)()
	err := i.work(ctx)
	end()
	i.call.stopReading()
	<-stopped
	i.s.memory.release(i.held.Load())
	switch {
	case err != nil:
		return err
	case isEnd(i.ended):
		return nil
	case i.s.closing.Err() != nil:
		return errClosing()
	}
	return rpcError(i.ended)
}

// read reads messages until the stream ends or ctx does.
func (i *intake) read(ctx context.Context) {
	defer close(i.ready)
	var until time.Time // when the stream has been silent for too long
	for {
		select {
		case i.slots <- struct{}{}:
		case <-ctx.Done():
			i.ended = ctx.Err()
			return
		}
		if now := i.call.now(); until.Sub(now) < i.s.o.Limits.Idle/2 && i.s.closing.Err() == nil {
			until = now.Add(i.s.o.Limits.Idle)
			i.call.mustRead(i.s.o.Limits.Idle)
			if i.s.closing.Err() != nil {
				i.call.stopReading() // Close may have come in between
			}
		}
		payload, compressed, ok := i.call.inlet.prefix()
		if i.ended = i.claim(ctx, payload, compressed); i.ended != nil {
			return
		}
		if ok && payload > smallPayload && payload <= i.most() {
			i.call.mustRead(i.s.o.Limits.Call + time.Duration(payload/leastRate)*time.Second)
			until = time.Time{}
		}
		if ok && payload <= i.most() { // else it is not kept
			i.call.inlet.load(payload)
		}
		m, err := i.decode(ctx)
		if err != nil {
			i.ended = err
			return
		}
		i.ready <- m // has room for all slots
	}
}

const (
	// perByte is how many bytes of memory a byte of a message takes: as it was read, in the buffers of its
	// decoder, decoded, and encoded for the store.
	perByte = 4
	// leastRate is how many bytes of a long message have to come in a second.
	leastRate = 64 << 10
)

// most is how many bytes a message may have, after decompression.
func (i *intake) most() int64 {
	if i.rpc == rpcPutDiscovered {
		return int64(i.s.o.Limits.Batch)
	}
	return int64(i.s.o.Limits.Item)
}

// claim takes memory for the next message before it is read. It waits until the messages of this stream that are not
// acknowledged are few enough bytes, and then until the budget of all streams has room.
func (i *intake) claim(ctx context.Context, payload int64, compressed bool) error {
	if payload > i.most() {
		payload = 0
	} else if compressed {
		payload = i.most()
	}
	bytes := payload * perByte
	for own := i.held.Load(); own > 0 && own+bytes > i.s.o.Limits.Stream; own = i.held.Load() {
		select {
		case <-i.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if bytes == 0 { // there is no message
		i.claimed = 0
		return nil
	}
	if err := i.s.memory.take(ctx, bytes); err != nil {
		return err
	}
	i.claimed = bytes
	i.held.Add(bytes)
	return nil
}

// decode receives the message that was read, and keeps of its memory what it takes in fact. That may be more than was
// claimed, so only a few messages are decoded at a time, and none while the budget is overdrawn.
func (i *intake) decode(ctx context.Context) (*message, error) {
	select {
	case i.s.decoding <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-i.s.decoding }()
	if i.claimed > 0 {
		if err := i.s.memory.take(ctx, 0); err != nil {
			return nil, err
		}
	}
	m, err := i.receive()
	if err != nil {
		return nil, err
	}
	i.held.Add(m.size - i.claimed)
	i.s.memory.release(i.claimed - m.size)
	return m, nil
}

// work commits and acknowledges what the reader has read, until that is all. Messages that come during
// a commit are committed together by the next one.
func (i *intake) work(ctx context.Context) error {
	batch := make([]*message, 0, cap(i.slots))
	for {
		select {
		case m, more := <-i.ready:
			if !more {
				return nil
			}
			batch = append(batch[:0], m)
		case <-ctx.Done():
			return rpcError(ctx.Err())
		}
		batch = i.gather(batch)
		i.commit(ctx, batch)
		if err := i.acknowledge(batch); err != nil {
			return err
		}
	}
}

// gatherTime is how long a message waits for others that come with it.
const gatherTime = time.Millisecond

// gather adds the messages that have come, or come within gatherTime, to a batch of one.
func (i *intake) gather(batch []*message) []*message {
	var over <-chan time.Time
	for n := len(batch[0].puts); n < maxPuts && len(batch) < cap(i.slots); {
		if len(i.ready) == 0 && over == nil {
			over = time.After(gatherTime)
		}
		select {
		case m, more := <-i.ready:
			if !more {
				return batch
			}
			batch = append(batch, m)
			n += len(m.puts)
		case <-over:
			return batch
		}
	}
	return batch
}

// acknowledge sends what became of messages.
func (i *intake) acknowledge(batch []*message) error {
	i.call.mustWrite(i.s.o.Limits.Send)
	defer i.call.mustWrite(0) // the stream may be silent for longer than that
	err := i.call.together(func() error {
		for n, m := range batch {
			if err := i.send(m); err != nil {
				return err
			}
			i.held.Add(-m.size)
			i.s.memory.release(m.size)
			batch[n] = nil
			<-i.slots
		}
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case i.freed <- struct{}{}:
	default:
	}
	return nil
}

// commit gives the items of messages to their crawls, and sets what became of them.
func (i *intake) commit(ctx context.Context, batch []*message) {
	var order []string // of the crawls
	groups := make(map[string]*putGroup)
	for _, m := range batch {
		for n := range m.puts {
			p := &m.puts[n]
			g := groups[p.crawl]
			if g == nil {
				g = new(putGroup)
				groups[p.crawl] = g
				order = append(order, p.crawl)
			}
			g.puts = append(g.puts, p.put)
			g.to = append(g.to, &m.statuses[p.index])
		}
	}
	for _, id := range order {
		i.put(ctx, id, groups[id])
	}
}

// putGroup is items for one crawl.
type putGroup struct {
	puts []crawl.Put
	to   []*urlfrontierpb.AckMessage_Status // of each put
}

// put has a crawl commit its items.
func (i *intake) put(ctx context.Context, id string, g *putGroup) {
	var results []crawl.PutResult
	err := i.s.with(ctx, id, true, func(c Crawl) (err error) {
		results, err = c.Put(ctx, g.puts)
		return err
	})
	failed := itemFailed
	if err != nil {
		if isCrawlID(err) {
			failed = itemCrawlID
		}
		i.s.skipped.skipped(i.s.o.Now(), failed, g.puts[0].URL.String(), "", err)
	}
	var counts [len(outcomeNames)]int
	for n, to := range g.to {
		o := failed
		if err == nil && n < len(results) {
			o = outcomeOf(results[n])
		}
		counts[o]++
		*to = o.status()
	}
	i.s.o.Metrics.count(i.rpc, &counts)
}

// outcomeOf is the outcome of a put.
func outcomeOf(r crawl.PutResult) outcome {
	switch r {
	case crawl.PutAccepted:
		return itemAccepted
	case crawl.PutKnown:
		return itemKnown
	case crawl.PutOutside:
		return itemOutside
	case crawl.PutOptedOut:
		return itemOptedOut
	}
	return itemInvalid
}
