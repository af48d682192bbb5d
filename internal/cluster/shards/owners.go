//go:build !core

package shards

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/routes"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// A query is a request to the owner of a shard, which posts bytes to /VERSION/KIND/SHARD. An answer changes
// nothing, or repeats what the first one did. So without one the query is sent again, to whoever owns the
// shard then.

// queryVersion is the version of queries, answers and the message of the end.
const queryVersion = 1

// queryKind is the kind of a query.
type queryKind string

// The kinds of queries.
const (
	queryRest   queryKind = "rest"
	queryRobots queryKind = "robots"
)

// path returns the path of queries about a shard.
func (k queryKind) path(shard string) string {
	return fmt.Sprintf("/%d/%s/%s", queryVersion, k, shard)
}

// queryTimeout bounds the wait for an answer.
const queryTimeout = 3 * time.Second

// owners are the ways to the owners of shards. It may be used concurrently.
type owners struct {
	member *membership.Node
	routes *routes.Routes
}

// query returns the answer of the owner of a shard. The errors are those of routes.Routes.Call;
// routes.ErrNotOwner: nobody owns the shard, or has opened its engine.
func (o *owners) query(ctx context.Context, s cluster.Shard, kind queryKind, query []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	owner := o.member.Owner(s)
	if owner == "" {
		return nil, fmt.Errorf("shard %d: %w", s, routes.ErrNotOwner)
	}
	answer, err := o.routes.Call(ctx, owner, kind.path(strconv.Itoa(int(s))), query)
	if err != nil {
		return nil, fmt.Errorf("shard %d: %w", s, err)
	}
	return answer, nil
}

// answers is the handler of queries of a kind, which the run of the shard answers.
func (e *engines) answers(f func(*run, context.Context, *crawl.Engine, []byte) ([]byte, error)) http.Handler {
	return routes.Calls(func(q *http.Request, query []byte) (answer []byte, err error) {
		s, err := strconv.ParseUint(q.PathValue("shard"), 10, 16)
		if err != nil {
			return nil, err
		}
		useErr := e.use(q.Context(), cluster.Shard(s), func(ctx context.Context, r *run, engine *crawl.Engine) {
			answer, err = f(r, ctx, engine, query)
		})
		if useErr != nil {
			return nil, useErr
		}
		return answer, err
	})
}
