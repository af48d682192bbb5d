package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/routes"
)

// Bounds of what a request to the API may make this node send to others.
const (
	answerTimeout  = 2 * time.Second  // for an answer that changes nothing
	commandTimeout = 30 * time.Second // for the commit of a command
	ownerPatience  = 2 * time.Second  // for a shard to have an owner whose engine is open
	ownerRetry     = 50 * time.Millisecond
	maxParts       = 32 // requests under way for one
)

// part is a request for a shard or a node.
type part struct {
	method string
	url    url.URL // its path and query
	kind   string  // media type of the body
	body   []byte
}

// partOf returns the part that repeats a request.
func partOf(r *http.Request, body []byte) part {
	return part{method: r.Method, url: *r.URL, kind: r.Header.Get("Content-Type"), body: body}
}

// read returns a part that reads a path of the API.
func read(path string, query url.Values) part {
	return part{method: http.MethodGet, url: url.URL{Path: basePath + path, RawQuery: query.Encode()}}
}

// pathOf returns a URL with a path only.
func pathOf(path string) url.URL { return url.URL{Path: path} }

// under returns the request for a part of the cluster, by its path.
func (p *part) under(ctx context.Context, prefix string) *http.Request {
	u := p.url
	u.Path = prefix + u.Path
	if u.RawPath != "" {
		u.RawPath = prefix + u.RawPath
	}
	r := (&http.Request{Method: p.method, URL: &u, Header: http.Header{}}).WithContext(ctx)
	if p.kind != "" {
		r.Header.Set("Content-Type", p.kind)
	}
	if p.body != nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(p.body)), int64(len(p.body))
	}
	return r
}

// refused is a response of a shard or node that is not the one that was wanted. It is passed on.
type refused struct {
	status int
	kind   string // media type
	body   []byte
}

// Error returns what the problem says.
func (r *refused) Error() string {
	var p struct{ Detail string }
	if json.Unmarshal(r.body, &p) != nil || p.Detail == "" {
		return http.StatusText(r.status)
	}
	return p.Detail
}

// GetStatus implements huma.StatusError.
func (r *refused) GetStatus() int { return r.status }

// isWrong reports whether an error is one that every shard gives to the request.
func isWrong(err error) bool {
	var r *refused
	return errors.As(err, &r) && r.status < http.StatusInternalServerError
}

// checked returns a response, or the error that it is.
func checked(response *http.Response, err error) (*http.Response, error) {
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	return nil, &refused{response.StatusCode, response.Header.Get("Content-Type"), body}
}

// shards returns how many shards there are.
func (s *Server) shards() int { return s.o.Cluster.Shards() }

// shardOf returns the shard of a host.
func (s *Server) shardOf(host string) cluster.Shard {
	return cluster.ShardOf(inspect.CanonicalHost(host), s.shards())
}

// errNoOwner means that nobody crawls a shard now.
var errNoOwner = errors.New("no node owns it now")

// toShard sends a part to the owner of a shard. A node that does not own the shard any more has done
// nothing, so the new owner is tried. The errors are those of routes.Routes.Do, and refused.
func (s *Server) toShard(ctx context.Context, shard cluster.Shard, p *part) (*http.Response, error) {
	waiting, cancel := context.WithTimeout(ctx, ownerPatience)
	defer cancel()
	for {
		owner, err := s.o.Cluster.Owner(shard), errNoOwner
		if owner != "" {
			var response *http.Response
			response, err = s.o.Cluster.Do(owner, p.under(ctx, "/shards/"+strconv.Itoa(int(shard))))
			if err == nil || !errors.Is(err, routes.ErrNotOwner) {
				response, err = checked(response, err)
				return response, ofShard(shard, err)
			}
		}
		select {
		case <-waiting.Done():
			return nil, ofShard(shard, err)
		case <-time.After(ownerRetry):
		}
	}
}

func ofShard(shard cluster.Shard, err error) error {
	if err == nil || isWrong(err) {
		return err
	}
	return fmt.Errorf("shard %d: %w", shard, err)
}

// toNode sends a part to a node, which answers for itself.
func (s *Server) toNode(ctx context.Context, node string, p *part) (*http.Response, error) {
	return checked(s.o.Cluster.Do(node, p.under(ctx, "/node")))
}

// decode reads a response that is one object.
func decode[T any](response *http.Response, err error) (value T, _ error) {
	if err != nil {
		return value, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxObject)).Decode(&value); err != nil {
		return value, fmt.Errorf("the answer is no object: %w", err)
	}
	return value, nil
}

// gather calls f for each of some keys, a bounded number at a time, and returns the values and the errors.
// An error that every shard gives is returned as such.
func gather[K comparable, T any](ctx context.Context, keys []K, f func(context.Context, K) (T, error)) (
	values map[K]T, failed map[K]error, wrong error,
) {
	values, failed = make(map[K]T), make(map[K]error)
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParts)
	for _, key := range keys {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			value, err := f(ctx, key)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				values[key] = value
			case isWrong(err):
				wrong = err
			default:
				failed[key] = err
			}
		})
	}
	wg.Wait()
	return values, failed, wrong
}

// allShards returns all shards in their order.
func (s *Server) allShards() []cluster.Shard {
	list := make([]cluster.Shard, s.shards())
	for i := range list {
		list[i] = cluster.Shard(i)
	}
	return list
}

// fromShards reads the same from all shards.
func fromShards[T any](ctx context.Context, s *Server, limit time.Duration, p part) (map[cluster.Shard]T, *Incomplete,
	error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	values, failed, err := gather(ctx, s.allShards(), func(ctx context.Context, shard cluster.Shard) (T, error) {
		return decode[T](s.toShard(ctx, shard, &p))
	})
	return values, missing(failed), err
}

// fromNodes reads the same from all nodes that are members.
func fromNodes[T any](ctx context.Context, s *Server, limit time.Duration, p part) (map[string]T, map[string]error,
	error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return gather(ctx, s.members(), func(ctx context.Context, node string) (T, error) {
		return decode[T](s.toNode(ctx, node, &p))
	})
}

// members returns the names of the nodes that may have engines.
func (s *Server) members() []string {
	st := s.o.Cluster.Status()
	names := []string{st.Node}
	for _, m := range st.Members {
		if m.State != "left" && (m.State == "live" || m.Shards > 0) {
			names = append(names, m.Node)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxWhy is how many reasons an Incomplete has.
const maxWhy = 10

// missing describes the shards that have not answered; nil if all have.
func missing(failed map[cluster.Shard]error) *Incomplete {
	if len(failed) == 0 {
		return nil
	}
	m := new(Incomplete)
	for shard, err := range failed {
		m.Shards = append(m.Shards, int(shard))
		if len(m.Why) < maxWhy {
			m.Why = append(m.Why, err.Error())
		}
	}
	slices.Sort(m.Shards)
	slices.Sort(m.Why)
	return m
}

// maxListed is how many shards the error lists.
const maxListed = 20

// Error describes what is missing.
func (m *Incomplete) Error() string {
	text := "not all of the cluster has answered"
	if len(m.Shards) > 0 {
		text += "; missing are shards " + strings.Trim(fmt.Sprint(m.Shards[:min(len(m.Shards), maxListed)]), "[]")
		if more := len(m.Shards) - maxListed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	if len(m.Nodes) > 0 {
		text += "; no answer from " + strings.Join(m.Nodes, ", ")
	}
	for _, why := range m.Why {
		text += "; " + why
	}
	return text
}

// later is the error of a command that is durable and not carried out everywhere; nil: it is.
func (m *Incomplete) later() error {
	if m == nil {
		return nil
	}
	return fmt.Errorf("the command is recorded, and will be carried out where it is not yet: %w", m)
}

// and returns what either of two lacks; each may be nil.
func (m *Incomplete) and(more *Incomplete) *Incomplete {
	if m == nil || more == nil {
		return cmp.Or(m, more)
	}
	why := union(m.Why, more.Why)
	return &Incomplete{union(m.Nodes, more.Nodes), union(m.Shards, more.Shards), why[:min(len(why), maxWhy)]}
}

func union[T cmp.Ordered](a, b []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// writeError writes the problem of an error.
func writeError(w http.ResponseWriter, err error) {
	var r *refused
	if errors.As(err, &r) {
		w.Header().Set("Content-Type", r.kind)
		w.WriteHeader(r.status)
		_, _ = w.Write(r.body) // the client may have gone
		return
	}
	status := asProblem(err).GetStatus()
	if status == http.StatusInternalServerError {
		status = http.StatusServiceUnavailable
	}
	writeProblem(w, status, err.Error())
}

// writeObject writes one object, or the problem of an error.
func writeObject(w http.ResponseWriter, value any, err error) {
	if err != nil {
		writeError(w, err)
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client may have gone
}
