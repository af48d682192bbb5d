package shards

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/natsconn"
	"github.com/amble-crawler/amble/internal/wire"
)

// A query is a message to PREFIX.query.SHARD, which the owner of the shard answers: the version, the kind
// of the query and its fields. The answer has the version and its fields. Without an answer the query is
// sent again: an answer changes nothing, or repeats what the first one did.

// queryVersion is the version of queries and answers.
const queryVersion = 1

// The kinds of queries.
const (
	queryRest   = 'r'
	queryRobots = 't'
)

// Bounds of queries: of one, in bytes; of those that wait; and of those that an engine answers at a time.
const (
	maxQuery   = 16 << 10
	maxWaiting = 256
	maxAnswers = 128
)

// queryTimeout bounds the wait for an answer.
const queryTimeout = 3 * time.Second

// errNoAnswer means that the owner of a shard did not answer: there is none, or it cannot be reached.
var errNoAnswer = errors.New("the owner of the shard does not answer")

// querier sends queries to the owners of shards. It may be used concurrently.
type querier struct {
	nc    *nats.Conn
	names natsconn.Names
}

func (a *querier) subject(s cluster.Shard) string { return a.names.OfShard("query", int32(s)) }

// query sends a query to the owner of a shard, and returns the fields of the answer. The error is errNoAnswer, or that of
// the context.
func (a *querier) query(ctx context.Context, s cluster.Shard, kind byte, fields []byte) (*wire.Decoder, error) {
	limited, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	m, err := a.nc.RequestWithContext(limited, a.subject(s), append([]byte{queryVersion, kind}, fields...))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("shard %d: %w: %w", s, errNoAnswer, natsconn.Plain(err))
	}
	d := wire.NewDecoder(m.Data)
	if version := d.Byte(); version != queryVersion {
		return nil, fmt.Errorf("shard %d: %w: its answer has version %d, not %d", s, errNoAnswer, version, queryVersion)
	}
	return &d, nil
}

// answer answers the queries to a shard until the context ends. f returns the fields of an answer, and false
// if there is none.
func (a *querier) answer(ctx context.Context, s cluster.Shard,
	f func(ctx context.Context, kind byte, fields *wire.Decoder) ([]byte, bool)) error {
	queries := make(chan *nats.Msg, maxWaiting)
	sub, err := a.nc.ChanSubscribe(a.subject(s), queries)
	if err != nil {
		return fmt.Errorf("answer queries to shard %d: %w", s, err)
	}
	free := make(chan struct{}, maxAnswers)
	for {
		select {
		case <-ctx.Done():
			err := sub.Unsubscribe()
			for range maxAnswers {
				free <- struct{}{}
			}
			if errors.Is(err, nats.ErrConnectionClosed) {
				err = nil
			}
			return err
		case m := <-queries:
			free <- struct{}{}
			go func() {
				defer func() { <-free }()
				if len(m.Data) > maxQuery || m.Reply == "" {
					return
				}
				d := wire.NewDecoder(m.Data)
				version, kind := d.Byte(), d.Byte()
				if version != queryVersion || !d.OK() {
					return
				}
				if answer, ok := f(ctx, kind, &d); ok {
					_ = m.Respond(append([]byte{queryVersion}, answer...)) // it will come again
				}
			}()
		}
	}
}
