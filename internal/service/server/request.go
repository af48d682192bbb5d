package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Request is a request of the API for a shard or a node.
type Request struct {
	Method string
	URL    url.URL // its path and query
	Kind   string  // media type of the body
	Body   []byte
}

// asked returns a copy of the request that an operation answers.
func asked(ctx context.Context) *Request {
	r, _ := ctx.Value(askedKey{}).(*Request)
	again := *r
	return &again
}

// with returns the request with another query.
func (r *Request) with(query url.Values) *Request {
	r.URL.RawQuery = query.Encode()
	return r
}

// refused is a response of a shard or node that is not the one that was wanted. It is passed on as it is.
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

// ContentType implements huma.ContentTypeFilter.
func (r *refused) ContentType(string) string { return r.kind }

// MarshalJSON implements json.Marshaler.
func (r *refused) MarshalJSON() ([]byte, error) {
	if !json.Valid(r.body) {
		return json.Marshal(huma.NewError(r.status, r.Error()))
	}
	return r.body, nil
}

// IsWrong reports whether an error is one that every shard gives to the request.
func IsWrong(err error) bool {
	var r *refused
	return errors.As(err, &r) && r.status < http.StatusInternalServerError
}

// unanswered is an error of a request that nobody has answered.
type unanswered struct{ error }

// Unwrap returns the cause.
func (u unanswered) Unwrap() error { return u.error }

// checked returns a response, or the error that it is.
func checked(response *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, unanswered{err}
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, unanswered{err}
	}
	return nil, &refused{response.StatusCode, response.Header.Get("Content-Type"), body}
}

// AskShard sends a request to a shard. The errors are refused and unanswered.
func AskShard(ctx context.Context, d Division, shard int, r *Request) (*http.Response, error) {
	response, err := checked(d.AskShard(ctx, shard, r))
	return response, OfShard(shard, err)
}

func OfShard(shard int, err error) error {
	if err == nil || IsWrong(err) {
		return err
	}
	return unanswered{fmt.Errorf("shard %d: %w", shard, err)}
}

// decode reads a response that is one object.
func decode[T any](response *http.Response, err error) (value T, _ error) {
	if err != nil {
		return value, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxObject)).Decode(&value); err != nil {
		return value, unanswered{fmt.Errorf("the answer is no object: %w", err)}
	}
	return value, nil
}

// Gather calls f for each of some keys, a bounded number at a time, and returns the values and the errors.
// An error that every shard gives is returned as such.
func Gather[K comparable, T any](ctx context.Context, keys []K, f func(context.Context, K) (T, error)) (
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
			case IsWrong(err):
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
func allShards(d Division) []int {
	list := make([]int, d.Shards())
	for i := range list {
		list[i] = i
	}
	return list
}

// AskNodes reads the same object from all nodes, and says which have failed.
func AskNodes[T any](ctx context.Context, d Division, limit time.Duration, r *Request) (
	values map[string]T, failed map[string]error, wrong error,
) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Gather(ctx, d.Nodes(), func(ctx context.Context, node string) (T, error) {
		return decode[T](checked(d.AskNode(ctx, node, r)))
	})
}

// maxObject bounds a response of one object, in bytes.
const maxObject = 16 << 20
