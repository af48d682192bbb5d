package membership

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
)

// Span is a time from one moment to another.
type Span struct{ From, To time.Time }

// ReadOwned returns when a node has owned shards since a time, by the clock of the servers: the registers of
// the shards have all of their epochs. A shard that it owns still it owns until now. A node is in no register
// that it has not owned a shard in. The error is ErrNoCluster or ErrReserved, or that the servers do not
// answer.
func ReadOwned(ctx context.Context, js jetstream.JetStream, names natsconn.Names, node string, since time.Time,
) (map[cluster.Shard][]Span, error) {
	owned, err := readOwned(ctx, js, names, node, since)
	if err != nil {
		return nil, fmt.Errorf("read the epochs of cluster %s: %w", names.Cluster, err)
	}
	return owned, nil
}

func readOwned(ctx context.Context, js jetstream.JetStream, names natsconn.Names, node string, since time.Time,
) (map[cluster.Shard][]Span, error) {
	stream, err := js.Stream(ctx, names.Stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, ErrNoCluster
	}
	if err == nil {
		stream, err = natsconn.Readable(ctx, js, stream)
	}
	if err != nil {
		return nil, natsconn.Down(err)
	}
	r := &registers{nc: js.Conn(), js: js, stream: stream, names: names}
	v := surveyor{names: names, settings: make(map[string]string)}
	if err := v.readSettings(ctx, r); err != nil {
		return nil, err
	}
	h := &history{names: names, node: node, since: since, last: v.epochs, owned: make(map[cluster.Shard][]Span)}
	if err := r.all(ctx, "epoch", h.take); err != nil {
		return nil, ended(ctx, err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, natsconn.Down(err)
	}
	for s := range h.last {
		h.end(cluster.Shard(s), info.TimeStamp)
	}
	return h.owned, h.err
}

// history gathers when a node has owned shards.
type history struct {
	names natsconn.Names
	node  string
	since time.Time
	last  []epochAt // by shard
	owned map[cluster.Shard][]Span
	err   error
}

// take takes the next message of a register.
func (h *history) take(m message) {
	text, _ := h.names.Cut(m.subject, "epoch")
	s, err := strconv.Atoi(text)
	if err != nil || s < 0 || s >= len(h.last) {
		return
	}
	_, epoch, err := decodeEpoch(m.data)
	if err != nil && h.err == nil {
		h.err = fmt.Errorf("%s: %w", m.subject, err)
	}
	h.end(cluster.Shard(s), m.at)
	h.last[s] = epochAt{epoch, cluster.Sequence(m.seq), m.at}
}

// end ends the newest epoch of a shard. Epochs of the node that follow each other are one span.
func (h *history) end(s cluster.Shard, at time.Time) {
	e := &h.last[s]
	if e.seq == 0 || e.Released || e.Owner.Node != h.node || at.Before(h.since) {
		return
	}
	from, spans := e.at, h.owned[s]
	if from.Before(h.since) {
		from = h.since
	}
	if n := len(spans); n > 0 && (!spans[n-1].To.Before(from) || n == MostSpans) {
		spans[n-1].To = at
		return
	}
	h.owned[s] = append(spans, Span{from, at})
}

// MostSpans is the most spans of a shard. If a node has owned it more often, the last one begins too early.
const MostSpans = 100
