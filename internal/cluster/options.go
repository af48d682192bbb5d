package cluster

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Options are the settings of a [Node]. Shards, TTL and Margin must be the same on all nodes
// of a cluster.
type Options struct {
	Node        string   // the name of the node, unique in the cluster
	Process     uint64   // a random number of this process
	Predecessor Sequence // the last membership of an earlier process that is known to have ended, or 0
	Weight      uint16   // the share of the shards that the node takes
	Shards      int      // the number of shards of the cluster

	TTL       time.Duration // how long a member must be silent before it may be sealed
	Margin    time.Duration // the part of the TTL that a node does not trust itself
	LastStart time.Duration // no request starts with less trust than this
	Heartbeat time.Duration // from one write of the own register to the next
	Retry     time.Duration // how long an answer may take before the message is repeated
	Settle    time.Duration // from the start of a membership to the claim of shards that never had an owner

	FaultPause time.Duration // from the failure of an engine to the next claim; it doubles with each

	Claims int // claims in flight at a time
	Limits int // shared limits that the node grants for each of its shards
}

// DefaultOptions returns the options of a cluster of 64 shards.
func DefaultOptions() Options {
	return Options{
		Weight: 1, Shards: 64,
		TTL: 20 * time.Second, Margin: 2 * time.Second, LastStart: time.Second,
		Heartbeat: 5 * time.Second, Retry: 2 * time.Second, Settle: 2 * time.Second,
		FaultPause: time.Minute, Claims: 32, Limits: 1 << 16,
	}
}

// maxShards bounds what a register or a message can make a node allocate.
const maxShards = 1 << 20

// validate returns nil, or what cannot be used.
func (o *Options) validate() error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(o.Node == "", "cluster.node is empty; give each node a name of its own")
	refuse(o.Shards < 1 || o.Shards > maxShards, "cluster.shards is %d, allowed is 1 to %d", o.Shards, maxShards)
	refuse(o.Weight == 0, "cluster.weight is 0, allowed is 1 to %d", math.MaxUint16)
	refuse(o.Margin < o.TTL/20, "the margin of %v is less than a twentieth of the TTL of %v, so it does not cover "+
		"clocks that run differently", o.Margin, o.TTL)
	refuse(o.Heartbeat <= 0 || o.Retry <= 0 || o.TTL-o.Margin-o.LastStart < 2*o.Heartbeat+o.Retry,
		"a TTL of %v less a margin of %v leaves no room for a lost heartbeat: one is sent each %v and repeated "+
			"after %v",
		o.TTL, o.Margin, o.Heartbeat, o.Retry)
	refuse(o.FaultPause <= 0, "no pause after the failure of an engine")
	refuse(o.Claims < 1 || o.Limits < 1, "no claims in flight, or no shared limits, are allowed")
	return errors.Join(errs...)
}

// stretch lengthens a time that one node reports to another by as much as their clocks may differ.
func (o *Options) stretch(d time.Duration) time.Duration {
	return time.Duration(min(float64(max(d, 0))*(1+float64(o.Margin)/float64(o.TTL)), float64(never)))
}

// never is longer than any crawl. An instant that much later does not overflow.
const never time.Duration = 1 << 61
