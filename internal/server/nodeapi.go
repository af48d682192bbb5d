package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/routes"
)

// nodeKey marks a request that another node wants answered by this one alone.
type nodeKey struct{}

// serveNodes answers the nodes of the cluster until the server closes. They come through NATS, which
// knows who they are, and may do everything. open is everything that is served.
func (s *Server) serveNodes(open http.Handler) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.serving.Go(func() {
		<-s.closing
		cancel()
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/shards/{shard}/", func(w http.ResponseWriter, r *http.Request) { s.answerForShard(open, w, r) })
	mux.Handle("/node"+basePath+"/", http.StripPrefix("/node", http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			open.ServeHTTP(w, r.WithContext(trusted(context.WithValue(r.Context(), nodeKey{}, true))))
		})))
	mux.HandleFunc("GET /node/status", func(w http.ResponseWriter, _ *http.Request) {
		writeObject(w, s.nodeStatus(), nil)
	})
	mux.HandleFunc("GET /node/orders/{order}", func(w http.ResponseWriter, r *http.Request) {
		order, err := strconv.ParseUint(r.PathValue("order"), 10, 64)
		if err == nil {
			err = s.o.Cluster.WaitForOrders(r.Context(), order)
		}
		writeObject(w, struct{}{}, err)
	})
	s.o.Cluster.Serve(ctx, mux)
}

// trusted gives a request the role of those who may do everything.
func trusted(request context.Context) context.Context {
	return context.WithValue(request, roleKey{}, roleFull)
}

// answerForShard answers a request that is about one shard with its engine.
func (s *Server) answerForShard(open http.Handler, w http.ResponseWriter, r *http.Request) {
	prefix := "/shards/" + r.PathValue("shard")
	n, err := strconv.ParseInt(r.PathValue("shard"), 10, 32)
	if err != nil || !strings.HasPrefix(r.URL.Path, prefix+basePath+"/") {
		http.NotFound(w, r)
		return
	}
	err = s.o.Cluster.Use(r.Context(), cluster.Shard(n), func(ctx context.Context, e *crawl.Engine) {
		// the shard may have to go to another node: a client that reads slowly must not hold it
		defer context.AfterFunc(ctx, func() { routes.BreakOff(r.Context()) })()
		ctx = context.WithValue(trusted(ctx), crawlKey{}, Crawl(e))
		http.StripPrefix(prefix, open).ServeHTTP(w, r.WithContext(ctx))
	})
	if err != nil {
		routes.RefuseShard(w)
	}
}

// nodeStatus is what the engines of one node come to.
type nodeStatus struct {
	Shards []int        `json:"shards"`
	Status crawl.Status `json:"status"`
}

// nodeStatus sums up the engines of this node. They share the limits of the process.
func (s *Server) nodeStatus() nodeStatus {
	st := nodeStatus{Shards: []int{}}
	var limits crawl.Limits
	for shard, one := range s.o.Cluster.Statuses() {
		st.Shards = append(st.Shards, int(shard))
		limits.Share(&one.Limits)
		one.Limits = crawl.Limits{}
		st.Status.Add(&one)
	}
	slices.Sort(st.Shards)
	st.Status.Limits = limits
	if len(st.Shards) == 0 {
		st.Status = emptyStatus()
	} else {
		st.Status.DataDir = s.o.DataDir
	}
	return st
}

// emptyStatus is the status of a node that has no engine.
func emptyStatus() crawl.Status {
	return crawl.Status{State: "opened", Reason: "this node crawls no shard now", URLs: map[string]int{},
		HostStates: map[string]int{}}
}
