//go:build !core

package clusterapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/service/server"
)

// ClusterView is what the NATS servers know of a cluster, as JSON. Times are in seconds.
type ClusterView struct {
	Cluster      string             `json:"cluster"`
	At           time.Time          `json:"at"` // by the clock of the NATS servers
	WithoutOwner int                `json:"shards_without_owner"`
	Moving       int                `json:"shards_moving"`
	Nodes        []ClusterMember    `json:"nodes"`
	Shards       []ClusterShard     `json:"shards"` // by number
	Replicas     []ClusterReplica   `json:"replicas"`
	Here         *ClusterMembership `json:"here,omitempty"` // the node that answers
	// Erasures are those that shards, or nodes that run, have not carried out.
	Erasures []membership.Erasing `json:"erasures,omitempty"`
}

// ClusterMember is a node.
type ClusterMember struct {
	Node      string  `json:"node"`
	State     string  `json:"state" enum:"trusted,drained,doubted,dead,left,unreadable"`
	Weight    int     `json:"weight"`
	Heartbeat float64 `json:"heartbeat_seconds"` // since its newest heartbeat
	Owns      int     `json:"owns"`              // shards
	Gets      int     `json:"gets"`              // shards that it should own and does not
	// Notes are what the node says of itself, or why its register cannot be read.
	Notes []string `json:"notes,omitempty"`
}

// ClusterShard is a shard.
type ClusterShard struct {
	Shard         int       `json:"shard"`
	Owner         string    `json:"owner,omitempty"` // "?": its register cannot be read
	Since         time.Time `json:"since,omitzero"`
	Epoch         uint64    `json:"epoch,omitempty"` // as the node that answers knows it
	Goal          string    `json:"goal,omitempty"`  // the node that should own it
	LogRecords    uint64    `json:"log_records"`     // that a new owner has to replay
	LogBytes      uint64    `json:"log_bytes"`
	Incoming      uint64    `json:"incoming"` // messages of other shards since the snapshot
	Snapshot      time.Time `json:"snapshot,omitzero"`
	SnapshotBytes int64     `json:"snapshot_bytes"`
	// Quarantine is why the owner does not crawl the shard now: its engine has failed.
	Quarantine string `json:"quarantine,omitempty"`
}

// ClusterReplica is a copy of the registers and the logs.
type ClusterReplica struct {
	Server  string `json:"server"`
	Leader  bool   `json:"leader"`
	Current bool   `json:"current"`
	Offline bool   `json:"offline"`
	Lag     uint64 `json:"lag"` // messages
}

// ClusterMembership is what a node knows of itself.
type ClusterMembership struct {
	Node      string  `json:"node"`
	Connected bool    `json:"connected"` // to a NATS server
	Member    bool    `json:"member"`
	Drained   bool    `json:"drained"`       // it takes no shards
	Trust     float64 `json:"trust_seconds"` // for which it may make requests without another heartbeat
	Refused   uint64  `json:"refused_publishes"`
}

// NewClusterView returns the view of a survey and the reports of its shards.
func NewClusterView(cluster string, s *membership.Survey, logs []journal.Report) ClusterView {
	v := ClusterView{Cluster: cluster, At: s.At, Nodes: []ClusterMember{}, Shards: []ClusterShard{},
		Replicas: []ClusterReplica{}}
	for _, m := range s.Members {
		v.Nodes = append(v.Nodes, ClusterMember{m.Node, string(m.State), int(m.Weight), m.Beat.Seconds(), m.Owns,
			m.Gets, m.Notes})
	}
	for i, o := range s.Shards {
		shard := ClusterShard{Shard: i, Owner: o.Node, Since: o.Since, Goal: o.Goal}
		if o.Fault != nil {
			shard.Quarantine = o.Fault.Reason
		}
		if i < len(logs) {
			log := &logs[i]
			shard.LogRecords, shard.LogBytes, shard.Incoming = log.Records, log.Bytes, log.Incoming
			shard.Snapshot, shard.SnapshotBytes = log.At, log.Snapshot.Size
		}
		v.Shards = append(v.Shards, shard)
		if o.Node == "" {
			v.WithoutOwner++
		} else if o.Goal != "" && o.Goal != o.Node {
			v.Moving++
		}
	}
	for _, r := range s.Replicas {
		v.Replicas = append(v.Replicas, ClusterReplica{r.Server, r.Leader, r.Current, r.Offline, r.Lag})
	}
	return v
}

// Register implements server.Division.
func (d *Division) Register(api huma.API) {
	op := server.Operation("GET", "/cluster", "cluster-show", "The nodes and shards of the cluster")
	op.Description = "Who owns each shard and who should, and how much log a new owner has to replay. It is what the " +
		"NATS servers know: if they do not answer, the status is 503."
	server.Handle(api, op, func(ctx context.Context, _ *struct{}) (*server.Object[ClusterView], error) {
		ctx, cancel := context.WithTimeout(ctx, server.AnswerTimeout)
		defer cancel()
		survey, logs, err := d.node.Survey(ctx)
		if err != nil {
			return nil, huma.NewError(http.StatusServiceUnavailable, err.Error())
		}
		st := d.node.Status()
		v := NewClusterView(st.Cluster, survey, logs)
		for i := range min(len(v.Shards), len(st.Shards)) {
			v.Shards[i].Epoch = uint64(st.Shards[i].Epoch)
		}
		v.Erasures = d.node.Erasing(survey)
		v.Here = &ClusterMembership{st.Node, st.Connected, st.Joined, st.Drained, st.Trust.Seconds(), d.node.Refused()}
		return &server.Object[ClusterView]{Body: v}, nil
	})
}
