package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// clusterStatus sums up the engines of all nodes.
func (s *Server) clusterStatus(ctx context.Context) CrawlStatus {
	parts, failed, _ := fromNodes[nodeStatus](ctx, s, answerTimeout, part{method: http.MethodGet, url: pathOf("/status")})
	var sum CrawlStatus
	known := make(map[int]bool)
	for _, node := range sortedKeys(parts) {
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
	sum.DataDir, sum.OutputDir = s.o.DataDir, ""
	sum.Cluster, sum.Incomplete = s.o.Cluster.Status().Cluster, s.unknown(known, failed)
	return sum
}

// unknown describes the shards that nobody knows something of, and the nodes that have not answered.
func (s *Server) unknown(known map[int]bool, failed map[string]error) *Incomplete {
	m := &Incomplete{Shards: []int{}, Why: []string{}}
	for shard := range s.shards() {
		if !known[shard] {
			m.Shards = append(m.Shards, shard)
		}
	}
	m.Nodes = sortedKeys(failed)
	for _, node := range m.Nodes {
		if len(m.Why) < maxWhy {
			m.Why = append(m.Why, failed[node].Error())
		}
	}
	if len(m.Shards) == 0 && len(m.Nodes) == 0 {
		return nil
	}
	if n := len(m.Shards); n > 0 && len(m.Why) < maxWhy {
		m.Why = append(m.Why, fmt.Sprintf("%d of %d shards are crawled by no node that has answered", n, s.shards()))
	}
	return m
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
