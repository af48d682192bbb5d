//go:build !core

package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
)

// Of returns what an operation is about: a crawl, or a division as a whole; neither: this node of a division.
func (s *Server) Of(request context.Context) (Crawl, Division) {
	return s.crawl(request), s.divided(request)
}

// RequestLogs returns the request log of the crawl that a request is about, or those of all shards that this node has
// ever had.
func (s *Server) RequestLogs(request context.Context) ([]string, error) {
	c := s.crawl(request)
	switch {
	case c == nil:
		return filepath.Glob(filepath.Join(s.o.DataDir, "shards", "*", requestlog.DirName))
	case s.o.Division != nil: // that of the shard
		return []string{filepath.Join(c.Status().DataDir, requestlog.DirName)}, nil
	}
	return []string{filepath.Join(s.o.DataDir, requestlog.DirName)}, nil
}

// OptOuts returns the opt-outs of the crawl or the division that a request is about.
func (s *Server) OptOuts(request context.Context) ([]crawl.OptOut, error) {
	if c := s.crawl(request); c != nil {
		return c.OptOuts()
	}
	all, err := AskAll[optOutList](request, s.o.Division, AnswerTimeout, Read("/optouts", nil))
	return all.OptOuts, err
}

// HandleOfURL registers an operation of a module about a URL: f answers for the crawl that has its host.
func HandleOfURL[I, T any](s *Server, api huma.API, op huma.Operation, urlOf func(*I) string,
	f func(context.Context, Crawl, *I) (T, error)) {
	Handle(api, op, ofOwner(s, hostOfURL(urlOf), func(ctx context.Context, in *I) (*Object[T], error) {
		return answer(f(ctx, s.crawl(ctx), in))
	}))
}

// Read returns the request that reads a path of the API.
func Read(path string, query url.Values) *Request {
	return &Request{Method: http.MethodGet, URL: url.URL{Path: BasePath + path, RawQuery: query.Encode()}}
}

// maxPart bounds the part that a node has of an answer of a module, such as a report, in bytes.
const maxPart = 256 << 20

// DecodeObject reads a response of the API that is one object, of 256 MiB at most, and closes it. err is that of the
// request.
func DecodeObject[T any](response *http.Response, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	value := new(T)
	if err := json.NewDecoder(io.LimitReader(response.Body, maxPart)).Decode(value); err != nil {
		return nil, Unanswered(fmt.Errorf("the answer is no %T: %w", *value, err))
	}
	return value, nil
}

// Unanswered makes an error one of a request that nobody has answered, which clients get as the status 503.
func Unanswered(err error) error {
	if err == nil {
		return nil
	}
	return unanswered{err}
}

// Missing describes nodes that have not answered, and shards that none has answered for, of so many; nil: there
// are neither.
func Missing(failed map[string]error, shards []int, of int) *Incomplete {
	m := &Incomplete{Nodes: SortedKeys(failed), Shards: append([]int{}, shards...), Why: []string{}}
	for _, node := range m.Nodes {
		if len(m.Why) < maxWhy {
			m.Why = append(m.Why, failed[node].Error())
		}
	}
	if len(m.Shards) == 0 && len(m.Nodes) == 0 {
		return nil
	}
	if n := len(m.Shards); n > 0 && len(m.Why) < maxWhy {
		m.Why = append(m.Why, fmt.Sprintf("%d of %d shards are crawled by no node that has answered", n, of))
	}
	return m
}

// Under returns the request for HTTP, with a prefix of its path.
func (r *Request) Under(ctx context.Context, prefix string) *http.Request {
	u := r.URL
	u.Path = prefix + u.Path
	if u.RawPath != "" {
		u.RawPath = prefix + u.RawPath
	}
	h := (&http.Request{Method: r.Method, URL: &u, Header: http.Header{}}).WithContext(ctx)
	if r.Kind != "" {
		h.Header.Set("Content-Type", r.Kind)
	}
	if r.Body != nil {
		h.Body, h.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
	}
	return h
}

// And returns what either of two lacks; each may be nil.
func (m *Incomplete) And(more *Incomplete) *Incomplete {
	if m == nil || more == nil {
		return cmp.Or(m, more)
	}
	why := union(m.Why, more.Why)
	return &Incomplete{union(m.Nodes, more.Nodes), union(m.Shards, more.Shards), why[:min(len(why), maxWhy)]}
}

func union[T cmp.Ordered](a, b []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}
