//go:build !core

package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
)

// URLCommands change URLs that are in the database, in the background; see crawl.Engine.
type URLCommands interface {
	DropQueue(ctx context.Context, host string) (waiting int, err error)
	Delete(context.Context, crawl.Deletion) (urls uint64, err error)
	Retry(context.Context, sweep.Selection, func(sweep.Retried) error) (sweep.Retried, error)
	CountRetries(context.Context, sweep.Selection, func(sweep.Retried) error) (sweep.Retried, error)
}

// DividedCommands are what a Division does with them.
type DividedCommands interface {
	// AddDeletion has shards carry out a deletion when somebody crawls them. It is durable when it returns.
	AddDeletion(ctx context.Context, o crawl.Deletion, shards []int) error
}

func urlCommandsAPI(s *Server, api huma.API) {
	Handle(api, hostCommand("drop", "Drop the queue of a host", "Its waiting URLs are excluded in the background. "+
		"URLs found later are queued as usual. "+durable),
		ofOwner(s, (*HostPath).host, func(ctx context.Context, in *HostPath) (*Object[hostDone], error) {
			n, err := s.crawl(ctx).DropQueue(ctx, inspect.CanonicalHost(in.Host))
			return answer(hostDone{in.Host, n}, err)
		}))
	retryAPI(s, api)
	deletionAPI(s, api)
}

// deletion is the request to delete URLs.
type deletion struct {
	Body struct {
		Host   string    `json:"host,omitempty" doc:"URLs of this host"`
		Before time.Time `json:"before,omitzero" doc:"only URLs that were discovered before this time"`
		All    bool      `json:"all,omitempty" doc:"URLs of all hosts, in place of host"`
	}
}

// deleted is the result of a deletion.
type deleted struct {
	Deleted uint64 `json:"deleted" doc:"URLs; 0 if not done"`
	Done    bool   `json:"done" doc:"they are gone; otherwise the deletion goes on in the background"`
	// Incomplete are shards of a cluster that have not answered. The order is durable: they carry it out.
	Incomplete *Incomplete `json:"incomplete,omitempty" doc:"in a cluster: shards that delete theirs when they are crawled again"`
}

// deletionWait is how long a response waits for the end of a deletion.
const deletionWait = 20 * time.Second

func deletionAPI(s *Server, api huma.API) {
	op := Operation("POST", "/urls/delete", "urls-delete", "Delete URLs", append(bodyErrors(), http.StatusNotFound)...)
	op.Description =
		"Deletes URLs, whatever their state, so that they are new when they are found again. What is known " +
			"of their hosts stays, as does the output. Of a host the first URLs are deleted, up to the first that " +
			"is not " +
			"to be. " +
			"The deletion survives restarts. After 20 seconds the response is sent, and the deletion goes on."
	Handle(api, op, func(ctx context.Context, in *deletion) (*Object[deleted], error) {
		o := crawl.Deletion{Host: inspect.CanonicalHost(in.Body.Host), Before: in.Body.Before}
		if in.Body.Host == "" {
			o.Host = ""
		}
		if (o.Host != "") == in.Body.All {
			return nil, errQuery{errors.New("want either host or all: true")}
		}
		if d := s.divided(ctx); d != nil {
			if o.Before.IsZero() || o.Before.After(s.o.Now()) {
				o.Before = s.o.Now()
			}
			return answer(deleteOf(ctx, d, o))
		}
		waited, cancel := context.WithTimeout(ctx, deletionWait)
		defer cancel()
		n, err := s.crawl(ctx).Delete(waited, o)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return answer(deleted{}, nil)
		}
		return answer(deleted{Deleted: n, Done: true}, err)
	})
}

// deleteOf deletes URLs of a host, or of all. Shards that do not answer do it when they can.
func deleteOf(ctx context.Context, d Division, o crawl.Deletion) (sum deleted, err error) {
	shards := allShards(d)
	if o.Host != "" {
		shards = []int{d.ShardOf(o.Host)}
	}
	durable := ctx
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	r := asked(ctx)
	parts, failed, err := Gather(ctx, shards, func(ctx context.Context, shard int) (deleted, error) {
		return decode[deleted](AskShard(ctx, d, shard, r))
	})
	sum = deleted{Done: len(failed) == 0, Incomplete: MissingShards(failed)}
	for _, part := range parts {
		sum.Deleted, sum.Done = sum.Deleted+part.Deleted, sum.Done && part.Done
	}
	if err == nil && len(failed) > 0 && d.AddDeletion(durable, o, SortedKeys(failed)) != nil {
		err = wholly(sum.Incomplete, nil)
	}
	return sum, err
}
