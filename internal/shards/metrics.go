package shards

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/amble-crawler/amble/internal/membership"
)

// metrics are what a node knows of its cluster, for Prometheus.
type metrics struct {
	node *Node

	connected, trust, heartbeat, unseen *prometheus.Desc
	shards, engines, nodes, refused     *prometheus.Desc
	stalled, lag, offline               *prometheus.Desc
}

// Metrics returns a collector of what the node knows of its cluster. It may be registered once.
func (n *Node) Metrics() prometheus.Collector {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("amble_cluster_"+name, help, labels, nil)
	}
	return &metrics{
		node:      n,
		connected: d("connected", "1 if the node is connected to a NATS server."),
		trust:     d("trust_seconds", "For how long the node may make requests if no heartbeat is written. 0: it makes none."),
		heartbeat: d("heartbeat_age_seconds", "Time since the newest heartbeat that was written was sent. -1: none was."),
		unseen:    d("unseen_seconds", "For how long heartbeats have been written and not come back to the node."),
		shards:    d("shards", "Shards of the whole cluster, by what the node knows of them: own, other, free.", "owner"),
		engines:   d("engines", "Engines that the node has open."),
		nodes:     d("nodes", "Nodes that the node knows of, by state: live, silent, left.", "state"),
		refused:   d("refused_publishes_total", "Messages to the log of a shard that were refused, because the shard has another owner."),
		stalled:   d("engines_stalled", "Engines that can write nothing: the log or the disk takes nothing."),
		lag:       d("server_lag_messages", "Messages of the registers and logs that a NATS server does not have yet.", "server"),
		offline:   d("server_offline", "1 if a NATS server with a copy of the registers and logs is not there.", "server"),
	}
}

// Describe is part of prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.connected, m.trust, m.heartbeat, m.unseen, m.shards, m.engines, m.nodes,
		m.refused, m.stalled, m.lag, m.offline} {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	s, p := m.node.Status(), m.node.Progress()
	connected := 0.0
	if s.Connected {
		connected = 1
	}
	gauge(m.connected, connected)
	gauge(m.trust, s.Trust.Seconds())
	gauge(m.heartbeat, max(-1, s.Renewed.Seconds()))
	gauge(m.unseen, s.Unseen.Seconds())
	gauge(m.engines, float64(p.Open))
	gauge(m.stalled, float64(p.Stalled))
	to <- prometheus.MustNewConstMetric(m.refused, prometheus.CounterValue, float64(m.node.engines.refused.Load()))
	owners := map[string]int{"own": 0, "other": 0, "free": 0}
	for _, shard := range s.Shards {
		switch shard.Owner {
		case "":
			owners["free"]++
		case s.Node:
			owners["own"]++
		default:
			owners["other"]++
		}
	}
	for owner, n := range owners {
		gauge(m.shards, float64(n), owner)
	}
	for state, n := range countMembers(s.Members) {
		gauge(m.nodes, float64(n), state)
	}
	for _, r := range m.node.member.LastReplicas() {
		offline := 0.0
		if r.Offline {
			offline = 1
		}
		gauge(m.lag, float64(r.Lag), r.Server)
		gauge(m.offline, offline, r.Server)
	}
}

// countMembers counts members by state.
func countMembers(members []membership.MemberStatus) map[string]int {
	states := map[string]int{"live": 0, "silent": 0, "left": 0}
	for _, m := range members {
		states[m.State]++
	}
	return states
}
