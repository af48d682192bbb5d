//go:build !core

package shards

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/records/wire"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/robots"
)

// A robots.txt that redirects to a host of another shard is fetched by the owner of that shard, under the
// limits of the host. That may take long: so the owner answers that it is not done, and gets the query again, with the
// same number, until it is. If it dies the next one begins again.

// Bounds of robots requests: how long a shard waits for the outcome, and before it queries again; how many an owner
// makes for others, and for how long it keeps an outcome.
const (
	robotsWait    = 5 * time.Minute
	robotsAgain   = 500 * time.Millisecond
	maxRobots     = 1000
	robotsKeep    = time.Minute
	maxRobotsText = 2 * weburl.MaxLength // a field of a header
)

// FetchRobots is part of crawl.Cluster.
func (o *others) FetchRobots(ctx context.Context, q crawl.RobotsQuery) (robots.Outcome, error) {
	query := appendRobotsQuery(nil, rand.Uint64(), &q)
	s := cluster.ShardOf(q.URL.Host(), o.shards)
	limited, cancel := context.WithTimeout(ctx, robotsWait)
	defer cancel()
	for limited.Err() == nil {
		if answer, err := o.owners.query(limited, s, queryRobots, query); err == nil {
			d := wire.NewDecoder(answer)
			if out, done, err := decodeRobotsAnswer(&d); err == nil && done {
				return out, nil
			}
		}
		pause(limited, robotsAgain)
	}
	return robots.Outcome{Failure: robots.FailureTimeout}, ctx.Err()
}

// robotsRequests are those that the engine of a shard makes for others.
type robotsRequests struct {
	ctx     context.Context // of the engine
	fetch   func(context.Context, crawl.RobotsQuery) (robots.Outcome, error)
	working sync.WaitGroup

	mu  sync.Mutex // guards what follows; nothing blocks under it
	all map[uint64]*robotsRequest
}

func newRobotsRequests(ctx context.Context,
	fetch func(context.Context, crawl.RobotsQuery) (robots.Outcome, error)) *robotsRequests {
	return &robotsRequests{ctx: ctx, fetch: fetch, all: make(map[uint64]*robotsRequest)}
}

// robotsRequest is one request for another shard.
type robotsRequest struct {
	done chan struct{} // closed when out is set
	out  robots.Outcome
}

// answer begins what a query wants, if it has not, and returns the outcome if there is one.
func (r *robotsRequests) answer(query []byte) ([]byte, error) {
	d := wire.NewDecoder(query)
	id, q, err := decodeRobotsQuery(&d)
	if err != nil {
		return nil, err
	}
	one := r.begin(id, q)
	if one == nil {
		return appendRobotsAnswer(nil, &robots.Outcome{Failure: robots.FailureTargetBusy}), nil
	}
	select {
	case <-one.done:
		return appendRobotsAnswer(nil, &one.out), nil
	default:
		return []byte{robotsNotYet}, nil
	}
}

// begin returns the request with a number, and begins it if it is new; nil: there are too many.
func (r *robotsRequests) begin(id uint64, q crawl.RobotsQuery) *robotsRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.all[id]; one != nil {
		return one
	}
	if len(r.all) >= maxRobots {
		return nil
	}
	one := &robotsRequest{done: make(chan struct{})}
	r.all[id] = one
	r.working.Go(func() {
		out, err := r.fetch(r.ctx, q)
		if err != nil { // the engine ends: its successor begins again
			r.forget(id)
			return
		}
		one.out = out
		close(one.done)
		time.AfterFunc(robotsKeep, func() { r.forget(id) })
	})
	return one
}

func (r *robotsRequests) forget(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, id)
}

// The states of an answer.
const (
	robotsNotYet = iota
	robotsDone
)

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// text decodes what appendText has encoded, up to a length.
func text(d *wire.Decoder, most int) string {
	n := d.UvarintMax(uint64(most))
	return string(d.Bytes(int(n)))
}

// bounded returns a text that is no longer than text allows; else there is none.
func bounded(text string) string {
	if len(text) > maxRobotsText {
		return ""
	}
	return text
}

func appendRobotsQuery(b []byte, id uint64, q *crawl.RobotsQuery) []byte {
	b = binary.BigEndian.AppendUint64(b, id)
	b = appendText(b, q.URL.String())
	b = appendText(b, q.Origin.URL("/").String())
	return appendText(appendText(b, bounded(q.ETag)), bounded(q.LastModified))
}

var errRobotsQuery = errors.New("a robots query cannot be read")

func decodeRobotsQuery(d *wire.Decoder) (id uint64, q crawl.RobotsQuery, err error) {
	id = d.Uint64()
	at, origin := text(d, weburl.MaxLength), text(d, weburl.MaxLength)
	q.ETag, q.LastModified = text(d, maxRobotsText), text(d, maxRobotsText)
	if err := d.End(); err != nil {
		return 0, q, err
	}
	var root weburl.URL
	if q.URL, err = weburl.Parse(at); err == nil {
		root, err = weburl.Parse(origin)
	}
	if err != nil || q.URL.String() != at || root.String() != origin || root.RequestURI() != "/" {
		return 0, q, errRobotsQuery
	}
	q.Origin = root.Origin()
	return id, q, nil
}

func appendRobotsAnswer(b []byte, out *robots.Outcome) []byte {
	truncated := byte(0)
	if out.Truncated {
		truncated = 1
	}
	b = append(b, robotsDone, byte(out.Failure), truncated)
	b = binary.AppendUvarint(b, uint64(max(out.Status, 0)))
	for _, field := range headerFields(&out.Header) {
		b = appendText(b, bounded(*field))
	}
	return appendText(b, string(out.Body[:min(len(out.Body), robots.MaxBody+1)]))
}

func decodeRobotsAnswer(d *wire.Decoder) (out robots.Outcome, done bool, err error) {
	switch state := d.Byte(); {
	case !d.OK() || state > robotsDone:
		return out, false, errRobotsQuery
	case state == robotsNotYet:
		return out, false, d.End()
	}
	out.Failure = robots.Failure(d.Byte())
	d.Require(out.Failure.IsKnown())
	truncated := d.Byte()
	d.Require(truncated <= 1)
	out.Truncated, out.Status = truncated == 1, int(d.UvarintMax(999))
	for _, field := range headerFields(&out.Header) {
		*field = text(d, maxRobotsText)
	}
	out.Body = []byte(text(d, robots.MaxBody+1))
	return out, true, d.End()
}

// headerFields are the fields of a header in the order of the format.
func headerFields(h *robots.Header) []*string {
	return []*string{
		&h.ContentType, &h.Location, &h.RetryAfter, &h.CacheControl, &h.Expires, &h.Date, &h.Age, &h.ETag,
		&h.LastModified,
	}
}
