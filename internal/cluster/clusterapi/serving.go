//go:build !core

package clusterapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/routes"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
)

// Serve implements server.Division. Requests come through NATS, which knows who the nodes are.
func (d *Division) Serve(ctx context.Context, ofCrawl func(server.Crawl) http.Handler, ofNode http.Handler) {
	mux := http.NewServeMux()
	mux.HandleFunc("/shards/{shard}/", func(w http.ResponseWriter, r *http.Request) { d.answerForShard(ofCrawl, w, r) })
	mux.Handle("/node"+server.BasePath+"/", http.StripPrefix("/node", ofNode))
	mux.HandleFunc("GET /node/status", func(w http.ResponseWriter, _ *http.Request) { write(w, d.nodeStatus()) })
	mux.HandleFunc("GET /node/desired/{sequence}", func(w http.ResponseWriter, r *http.Request) {
		sequence, err := strconv.ParseUint(r.PathValue("sequence"), 10, 64)
		if err == nil {
			err = d.node.WaitForDesired(r.Context(), sequence)
		}
		if err != nil {
			server.WriteProblem(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		write(w, struct{}{})
	})
	d.node.Serve(ctx, mux)
}

// write writes one object.
func write(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the node may have gone
}

// answerForShard answers a request that is about one shard with its engine.
func (d *Division) answerForShard(ofCrawl func(server.Crawl) http.Handler, w http.ResponseWriter, r *http.Request) {
	prefix := "/shards/" + r.PathValue("shard")
	n, err := strconv.ParseInt(r.PathValue("shard"), 10, 32)
	if err != nil || !strings.HasPrefix(r.URL.Path, prefix+server.BasePath+"/") {
		http.NotFound(w, r)
		return
	}
	err = d.node.Use(r.Context(), cluster.Shard(n), func(ctx context.Context, e *crawl.Engine) {
		// the shard may have to go to another node: a client that reads slowly must not hold it
		defer context.AfterFunc(ctx, func() { routes.BreakOff(r.Context()) })()
		http.StripPrefix(prefix, ofCrawl(e)).ServeHTTP(w, r.WithContext(ctx))
	})
	if err != nil {
		routes.RefuseShard(w)
	}
}

// Here implements server.Division.
func (d *Division) Here() crawl.Status { return d.nodeStatus().Status }

// Status implements server.Division: it sums up the engines of all nodes.
func (d *Division) Status(ctx context.Context) server.CrawlStatus {
	parts, failed, _ := askNodes[nodeStatus](ctx, d, server.AnswerTimeout, "/status")
	var sum server.CrawlStatus
	known := make(map[int]bool)
	for _, node := range server.SortedKeys(parts) {
		st := parts[node]
		for _, shard := range st.Shards {
			known[shard] = true
		}
		if len(st.Shards) > 0 {
			sum.Add(&st.Status)
		}
	}
	if len(known) == 0 {
		sum.Status = emptyStatus()
		sum.Reason = "no node crawls a shard now"
	}
	var unknown []int
	for shard := range d.Shards() {
		if !known[shard] {
			unknown = append(unknown, shard)
		}
	}
	sum.DataDir, sum.OutputDir = d.dataDir, ""
	sum.Cluster, sum.Incomplete = d.node.Status().Cluster, server.Missing(failed, unknown, d.Shards())
	return sum
}

// nodeStatus is what the engines of one node come to.
type nodeStatus struct {
	Shards []int        `json:"shards"`
	Status crawl.Status `json:"status"`
}

// nodeStatus sums up the engines of this node. They share the limits of the process.
func (d *Division) nodeStatus() nodeStatus {
	st := nodeStatus{Shards: []int{}}
	var limits crawl.Limits
	for shard, one := range d.node.Statuses() {
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
		st.Status.DataDir = d.dataDir
	}
	return st
}

// emptyStatus is the status of a node that has no engine.
func emptyStatus() crawl.Status {
	return crawl.Status{State: "opened", Reason: "this node crawls no shard now", URLs: map[string]int{},
		HostStates: map[string]int{}}
}
