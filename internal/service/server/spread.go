package server

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// An operation is written once, about one crawl. What makes it one about a divided crawl stands around it: the
// owner of the host answers (ofOwner), the answers of all shards are added up (ofAll), or their lists
// follow each other (pages.go, exports.go). What a division cannot do says so (onlyWhole).

// handler answers an operation.
type handler[I, O any] func(context.Context, *I) (*O, error)

// ofOwner has the shard of a host answer. Without a host it is f that answers.
func ofOwner[I, T any](s *Server, hostOf func(*I) (string, error), f handler[I, Object[T]]) handler[I, Object[T]] {
	return func(ctx context.Context, in *I) (*Object[T], error) {
		d := s.divided(ctx)
		if d == nil {
			return f(ctx, in)
		}
		host, err := hostOf(in)
		if err != nil {
			return nil, err
		}
		if host == "" {
			return f(ctx, in)
		}
		r := asked(ctx)
		limit := CommandTimeout
		if r.Method == http.MethodGet {
			limit = 2 * AnswerTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return answer(decode[T](AskShard(ctx, d, d.ShardOf(host), r)))
	}
}

// hostOfURL is the host of a URL, for ofOwner.
func hostOfURL[I any](urlOf func(*I) string) func(*I) (string, error) {
	return func(in *I) (string, error) {
		u, err := weburl.Parse(urlOf(in))
		if err != nil {
			return "", errQuery{err}
		}
		return u.Host(), nil
	}
}

// Merged is an answer that others of its kind can be added to.
type Merged[T any] interface {
	*T
	// Begin makes the zero value the answer of no shard.
	Begin()
	// Add adds the answer of the next shard.
	Add(*T)
	// Lacks says what is missing.
	Lacks(*Incomplete)
}

// ofAll adds up the answers of all shards, in the order of the shards.
func ofAll[I, T any, M Merged[T]](s *Server, limit time.Duration, f handler[I, Object[T]]) handler[I, Object[T]] {
	return func(ctx context.Context, in *I) (*Object[T], error) {
		d := s.divided(ctx)
		if d == nil {
			return f(ctx, in)
		}
		return answer(AskAll[T, M](ctx, d, limit, asked(ctx)))
	}
}

// AskAll sends the same request to all shards, and adds up the answers.
func AskAll[T any, M Merged[T]](ctx context.Context, d Division, limit time.Duration, r *Request) (sum T, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	parts, failed, wrong := Gather(ctx, allShards(d), func(ctx context.Context, shard int) (T, error) {
		return decode[T](AskShard(ctx, d, shard, r))
	})
	return sumOf[T, M](parts, MissingShards(failed)), wrong
}

// sumOf adds up answers in the order of their shards.
func sumOf[T any, M Merged[T]](parts map[int]T, lacking *Incomplete) (sum T) {
	M(&sum).Begin()
	for _, shard := range SortedKeys(parts) {
		part := parts[shard]
		M(&sum).Add(&part)
	}
	M(&sum).Lacks(lacking)
	return sum
}

// onlyWhole refuses an operation that a division does not have.
func (s *Server) onlyWhole(op huma.Operation, why string) huma.Operation {
	op.Middlewares = append(huma.Middlewares{func(c huma.Context, next func(huma.Context)) {
		if s.divided(c.Context()) == nil {
			next(c)
			return
		}
		_ = huma.WriteErr(s.api, c, http.StatusNotImplemented, why) // the client may have gone
	}}, op.Middlewares...)
	return op
}

// only returns a copy of a query with other values for some names; an empty one removes the name.
func only(query url.Values, set map[string]string) url.Values {
	q := make(url.Values, len(query))
	for name, values := range query {
		q[name] = values
	}
	for name, value := range set {
		if q.Del(name); value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// checkRobotsOf has each shard check its URLs.
func checkRobotsOf(ctx context.Context, d Division, urls []weburl.URL) (all robotsChecks, err error) {
	byShard := make(map[int]url.Values)
	for _, u := range urls {
		shard := d.ShardOf(u.Host())
		if byShard[shard] == nil {
			byShard[shard] = url.Values{}
		}
		byShard[shard].Add("url", u.String())
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerTimeout)
	defer cancel()
	parts, failed, err := Gather(ctx, SortedKeys(byShard), func(ctx context.Context, shard int) (robotsChecks, error) {
		return decode[robotsChecks](AskShard(ctx, d, shard, asked(ctx).with(byShard[shard])))
	})
	if lacking := MissingShards(failed); err == nil && lacking != nil {
		err = lacking
	}
	all.URLs = []inspect.Checked{}
	for _, u := range urls {
		part := parts[d.ShardOf(u.Host())]
		if err == nil && len(part.URLs) > 0 {
			all.URLs = append(all.URLs, part.URLs[0])
			part.URLs = part.URLs[1:]
			parts[d.ShardOf(u.Host())] = part
		}
	}
	return all, err
}
