package cluster

import "time"

// Fault is why a shard is in quarantine: its engine has failed for a reason that is not the node's, so that it would
// fail on any other node too. The owner keeps the shard, grants the limits that hash to it, and opens the engine
// again after a pause.
type Fault struct {
	Times    int      // how often the engine has failed since it last ran for longer than its pause
	Kind     string   // of the message at which it fails, as in PREFIX.KIND.SHARD; empty: it is none
	Sequence Sequence // of that message
	Reason   string
}

// maxFaults bounds the failures that count: the pause grows to 64 times the first one.
const maxFaults = 7

// pause returns the time from one failure to the next claim.
func (o *Options) pause(faults int) time.Duration {
	return o.FaultPause << (min(max(faults, 1), maxFaults) - 1)
}

// EngineFailed reports that the engine of a shard has ended, and cannot run. The number of failures is counted here.
func (n *Node) EngineFailed(now Instant, s Shard, f Fault) {
	h := n.byShard[s]
	if h == nil || h.engine == stopped {
		return
	}
	if h.faults > 0 && now.Sub(h.began) > n.o.pause(h.faults) {
		h.faults = 0
	}
	f.Times = min(h.faults+1, maxFaults)
	h.fault = &f
	n.EngineStopped(now, s)
}

// RetryFaults ends the pauses of all shards of this node that are in quarantine: somebody has removed a reason.
func (n *Node) RetryFaults(now Instant) {
	for s := range n.epochs {
		if v := &n.epochs[s]; v.fault != nil && n.isMine(v) {
			v.seen = now.Add(-n.o.pause(maxFaults))
			n.reconcile(now, Shard(s))
		}
	}
}

// isQuarantined reports whether a shard of this node is in quarantine.
func (n *ownership) isQuarantined(s Shard) bool {
	v := &n.epochs[s]
	return v.fault != nil && n.isMine(v) && v.granter != nil
}

// isPaused reports whether a shard is in quarantine and its engine is not to be opened yet.
func (n *ownership) isPaused(now Instant, v *epochView) bool {
	return v.fault != nil && now < v.seen.Add(n.o.pause(v.fault.Times))
}
