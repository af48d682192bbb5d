package membership

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Replica is a copy of the registers and the logs.
type Replica struct {
	Server  string
	Leader  bool
	Current bool // it has all that the leader has, or nearly
	Offline bool
	Lag     uint64        // messages that it does not have yet
	Active  time.Duration // since it was heard of
}

// Replicas gets the state of the copies from the servers. A copy that stays behind while the others go
// on needs an operator: nats-server may have given it up.
func (n *shell) Replicas(ctx context.Context) (list []Replica, err error) {
	info, err := n.reg.stream.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("get the state of the copies of stream %s: %w", n.reg.names.Stream(), err)
	}
	return replicas(info), nil
}

// replicas returns the copies of a stream; none: there is a single server.
func replicas(info *jetstream.StreamInfo) (list []Replica) {
	if info.Cluster == nil {
		return nil
	}
	if info.Cluster.Leader != "" {
		list = append(list, Replica{Server: info.Cluster.Leader, Leader: true, Current: true})
	}
	for _, p := range info.Cluster.Replicas {
		list = append(list,
			Replica{Server: p.Name, Current: p.Current, Offline: p.Offline, Lag: p.Lag, Active: p.Active})
	}
	return list
}

// healthEvery is how often a node looks for copies that stay behind. One that does so twice in a row
// is reported.
const healthEvery = time.Minute

// watchReplicas reports copies that stay behind, until the context ends.
func (n *Node) watchReplicas(ctx context.Context) {
	ticker := time.NewTicker(healthEvery)
	defer ticker.Stop()
	var before map[string]bool
	for {
		limited, cancel := context.WithTimeout(ctx, healthEvery/2)
		list, err := n.Replicas(limited)
		cancel()
		if err == nil { // the loss of trust is reported already
			before = n.reportBehind(list, before)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// reportBehind reports the copies that are behind and were so before. It returns those that are
// behind.
func (n *shell) reportBehind(list []Replica, before map[string]bool) (behind map[string]bool) {
	behind = make(map[string]bool)
	for _, r := range list {
		if r.Current && !r.Offline {
			continue
		}
		if behind[r.Server] = true; before[r.Server] {
			n.log.Warn("a NATS server does not keep up with the registers and logs of the cluster; look at its log",
				"server", r.Server, "offline", r.Offline, "behind", r.Lag, "heard", r.Active)
		}
	}
	return behind
}
