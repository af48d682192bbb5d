//go:build !core

package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// HandleOfEachNode registers an operation of one object about what a node has kept itself. In a division sum makes one
// of those of all nodes; lacking says which have not answered.
func HandleOfEachNode[T any](s *Server, api huma.API, op huma.Operation, f func(context.Context) T,
	sum func(parts map[string]T, lacking *Incomplete) T) {
	Handle(api, op, func(ctx context.Context, _ *struct{}) (*Object[T], error) {
		d := s.divided(ctx)
		if d == nil {
			return answer(f(ctx), nil)
		}
		parts, failed, err := AskNodes[T](ctx, d, AnswerTimeout, asked(ctx))
		var lacking *Incomplete
		if len(failed) > 0 {
			lacking = d.Absent(failed)
		}
		return answer(sum(parts, lacking), err)
	})
}

// HandleOfNodes registers an operation of lines of T about what a node has kept itself. f writes the lines, and sets
// the counts with Stream.Count. In a division each node answers, one after the other, and the counts are added up.
func HandleOfNodes[T, I any](s *Server, api huma.API, op huma.Operation, f func(context.Context, *I, *Stream) error,
	counts ...string) {
	Handle(api, streams[T](api, op), func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
		return s.stream(func(t *Stream) error {
			d := s.divided(ctx)
			if d == nil {
				t.w.Header().Set("Trailer", strings.Join(counts, ", "))
				return f(ctx, in, t)
			}
			t.w.Header().Set("Trailer", strings.Join(append(counts[:len(counts):len(counts)], TrailerIncomplete), ", "))
			return writeNodes(ctx, d, t, counts)
		}), nil
	})
}

// writeNodes writes the lines of all nodes, one after the other, and the sums of their counts.
func writeNodes(ctx context.Context, d Division, t *Stream, counts []string) error {
	failed := make(map[string]error)
	sums := make([]uint64, len(counts))
	nodes := d.Nodes()
	for _, node := range nodes {
		trailer, err := writeNode(ctx, d, t, node)
		switch {
		case IsWrong(err) || ctx.Err() != nil:
			return err
		case err != nil:
			failed[node] = err
			continue
		}
		for i, name := range counts {
			n, _ := strconv.ParseUint(trailer.Get(name), 10, 64) // the node counts them
			sums[i] += n
		}
	}
	if len(failed) == len(nodes) && !t.begun {
		return d.Absent(failed)
	}
	t.Begin()
	for i, name := range counts {
		t.Count(name, sums[i])
	}
	if len(failed) > 0 {
		t.w.Header().Set(TrailerIncomplete, strings.Join(SortedKeys(failed), ", "))
	}
	return nil
}

// writeNode writes the lines of a node, and returns its trailer.
func writeNode(ctx context.Context, d Division, t *Stream, node string) (http.Header, error) {
	response, err := checked(d.AskNode(ctx, node, asked(ctx)))
	if err != nil {
		return nil, err
	}
	_, trailer, err := relay(t, response)
	return trailer, err
}
