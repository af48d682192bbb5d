//go:build !core

package clusterapi

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/service/server"
)

// collector collects metrics of this process as a node of a cluster.
type collector struct {
	node Node

	connected, joined, trust, owned, free, members, refused, quarantine *prometheus.Desc
	records, bytes, incoming, snapshot, lag, offline                    *prometheus.Desc
}

func newCollector(n Node) *collector {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("amble_cluster_"+name, help, labels, nil)
	}
	return &collector{
		node:      n,
		connected: d("connected", "1 if this node is connected to a NATS server."),
		joined:    d("joined", "1 if this node is a member."),
		trust:     d("trust_seconds", "Time for which this node may make requests without another heartbeat."),
		owned:     d("shards_owned", "Shards of this node."),
		free:      d("shards_without_owner", "Shards that nobody crawls, as this node knows it."),
		quarantine: d("shards_in_quarantine", "Shards of this node whose engines have failed for a reason that is not "+
			"the node's: they are not crawled."),
		members: d("members", "Members by state, as this node knows them: live, silent, left, unreadable.", "state"),
		refused: d("refused_publishes_total", "Times that the log of a shard refused this node, because another one "+
			"owns the shard."),
		records: d("log_records", "Messages in the logs of this node's shards that a new owner would have to replay. "+
			"Absent while the NATS servers do not answer."),
		bytes: d("log_bytes", "Bytes of these messages, estimated."),
		incoming: d("incoming_messages",
			"Messages with URLs of other shards, since the snapshots of this node's shards."),
		snapshot: d("snapshot_age_seconds",
			"Age of the oldest snapshot of this node's shards; of those that have one."),
		lag: d("server_lag_messages", "Messages of the registers and logs that a NATS server does not have yet.",
			"server"),
		offline: d("server_offline", "1 if a NATS server with a copy of the registers and logs is not there.",
			"server"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.connected, c.joined, c.trust, c.owned, c.free, c.members, c.refused,
		c.quarantine, c.records, c.bytes, c.incoming, c.snapshot, c.lag, c.offline} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	st := c.node.Status()
	members := map[string]int{"live": 0, "silent": 0, "left": 0, "unreadable": 0}
	for _, m := range st.Members {
		members[m.State]++
	}
	for state, n := range members {
		gauge(c.members, float64(n), state)
	}
	owned, free, quarantined := 0, 0, 0
	for _, s := range st.Shards {
		switch s.Owner {
		case st.Node:
			if owned++; s.Fault != nil {
				quarantined++
			}
		case "":
			free++
		}
	}
	gauge(c.connected, toFloat(st.Connected))
	gauge(c.joined, toFloat(st.Joined))
	gauge(c.trust, st.Trust.Seconds())
	gauge(c.owned, float64(owned))
	gauge(c.free, float64(free))
	gauge(c.quarantine, float64(quarantined))
	to <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(c.node.Refused()))
	c.collectLogs(gauge, st.Node)
}

func toFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collectLogs collects what the NATS servers hold of the shards of this node.
func (c *collector) collectLogs(gauge func(*prometheus.Desc, float64, ...string), node string) {
	ctx, cancel := context.WithTimeout(context.Background(), server.AnswerTimeout)
	defer cancel()
	survey, logs, err := c.node.Survey(ctx)
	if err != nil {
		return
	}
	var records, bytes, incoming uint64
	oldest := 0.0
	for i := range min(len(logs), len(survey.Shards)) {
		if survey.Shards[i].Node != node {
			continue
		}
		log := &logs[i]
		records, bytes, incoming = records+log.Records, bytes+log.Bytes, incoming+log.Incoming
		if !log.At.IsZero() {
			oldest = max(oldest, survey.At.Sub(log.At).Seconds())
		}
	}
	gauge(c.records, float64(records))
	gauge(c.bytes, float64(bytes))
	gauge(c.incoming, float64(incoming))
	gauge(c.snapshot, oldest)
	for _, r := range survey.Replicas {
		gauge(c.lag, float64(r.Lag), r.Server)
		gauge(c.offline, toFloat(r.Offline), r.Server)
	}
}
