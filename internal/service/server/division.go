package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/optout"
)

// Division is a crawl that assigns its hosts to shards. One process crawls a shard at a time: a node,
// this one or another. Operations reach the shards by what spread.go has, and the rest is here. The methods are
// called by many goroutines at once.
type Division interface {
	// Shards returns the number of shards.
	Shards() int
	// ShardOf returns the shard of a host.
	ShardOf(host string) int
	// AskShard sends a request of the API to the node that crawls a shard, and waits for one if there is none.
	// After an error nothing was done, or nobody knows.
	AskShard(ctx context.Context, shard int, r *Request) (*http.Response, error)
	// Nodes returns the names of the nodes that may crawl shards, in their order.
	Nodes() []string
	// AskNode sends a request of the API to a node, which answers for itself.
	AskNode(ctx context.Context, node string, r *Request) (*http.Response, error)
	// Absent says what an answer lacks without these nodes.
	Absent(failed map[string]error) *Incomplete

	// Status returns the status of the whole crawl, Here that of what this node crawls.
	Status(ctx context.Context) CrawlStatus
	Here() crawl.Status
	// Observe sets the observer of what this node crawls.
	Observe(crawl.Observer)

	// NewImport begins to add URLs. With again, known ones that failed, were denied or excluded go back.
	NewImport(o crawl.ImportOptions, again bool) crawl.Import
	// SetPaused pauses all shards, or resumes them. It is durable when it returns, with the nodes that do not
	// follow yet.
	SetPaused(ctx context.Context, paused bool) (*Incomplete, error)
	// SetOptOut records an opt-out for all shards as SetPaused pauses them, or with remove removes it. found says
	// whether there was one of its scope and value.
	SetOptOut(ctx context.Context, e optout.Entry, remove bool) (found bool, lacking *Incomplete, err error)
	// Followed waits until all nodes have the newest settings, and returns those that have not.
	Followed(ctx context.Context) *Incomplete
	DividedCommands

	// Register registers the operations that only a division has.
	Register(api huma.API)
	// Collectors returns the metrics that only a division has.
	Collectors() []prometheus.Collector
	// Serve answers other nodes until the context ends: about a shard of this node by ofCrawl of its engine,
	// about this node by ofNode.
	Serve(ctx context.Context, ofCrawl func(Crawl) http.Handler, ofNode http.Handler)
}

// CrawlStatus is the status of the crawl, as the API sends it.
type CrawlStatus struct {
	crawl.Status
	Cluster string `json:"cluster,omitempty"` // the name of the cluster; the numbers are those of all its nodes
	// Incomplete says what is not in the numbers: in a cluster, when not all have answered.
	Incomplete *Incomplete `json:"incomplete,omitempty"`
}

// Bounds of what a request to the API may make this node send to others.
const (
	AnswerTimeout  = 2 * time.Second  // for an answer that changes nothing
	CommandTimeout = 30 * time.Second // for the commit of a command
	maxParts       = 32               // requests under way for one
)

type (
	nodeKey  struct{} // marks a request that another node wants answered by this one alone
	crawlKey struct{} // the crawl of a request about one shard
	askedKey struct{} // the Request as it came
)

// divided returns the division that a request is about as a whole; nil: it is about one crawl, or one node.
func (s *Server) divided(request context.Context) Division {
	if s.o.Division == nil || s.crawl(request) != nil || request.Value(nodeKey{}) != nil {
		return nil
	}
	return s.o.Division
}

// crawl returns the crawl that a request is about; nil: it is about a division.
func (s *Server) crawl(request context.Context) Crawl {
	if c, ok := request.Value(crawlKey{}).(Crawl); ok {
		return c
	}
	return s.only
}

// ofCrawl answers requests of other nodes about one shard. They may do everything: who they are is known.
func (s *Server) ofCrawl(c Crawl) http.Handler { return s.inContext(crawlKey{}, c) }

// ofNode answers requests of other nodes about this one.
func (s *Server) ofNode() http.Handler { return s.inContext(nodeKey{}, true) }

func (s *Server) inContext(key, value any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(context.WithValue(r.Context(), key, value), roleKey{}, roleFull)
		s.open.ServeHTTP(w, r.WithContext(ctx))
	})
}

// status returns the status of the crawl that a request is about.
func (s *Server) status(ctx context.Context) CrawlStatus {
	if c := s.crawl(ctx); c != nil {
		return CrawlStatus{Status: c.Status()}
	}
	return s.o.Division.Status(ctx)
}

// here returns the status of what this process crawls.
func (s *Server) here() crawl.Status {
	if s.o.Division == nil {
		return s.only.Status()
	}
	return s.o.Division.Here()
}

// keepRequest is a middleware for divided crawls: it keeps the request as it came, so that an operation can send
// it on. A body of lines stays with the operation.
func (s *Server) keepRequest(c huma.Context, next func(huma.Context)) {
	if s.divided(c.Context()) == nil {
		next(c)
		return
	}
	r, w := humago.Unwrap(c)
	_ = http.NewResponseController(w).SetWriteDeadline(s.o.Now().Add(CommandTimeout + streamTimeout))
	asked := &Request{Method: r.Method, URL: *r.URL, Kind: r.Header.Get("Content-Type")}
	if b := c.Operation().RequestBody; b != nil && b.Content[JSONLines] == nil {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if asked.Body = body; err != nil {
			r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{err}))
		} else if len(body) > 0 {
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
	}
	next(huma.WithValue(c, askedKey{}, asked))
}

// broken is a body that cannot be read.
type broken struct{ error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, b.error }
