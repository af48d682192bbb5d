//go:build !core

package shards

import (
	"net/netip"
	"strings"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/membership"
)

// grants are those of the node. Its engines share a frontier.SharedGate, which keeps the limits of addresses,
// ranges and groups over the shards of the node by what the node has of them.
type grants struct{ member *membership.Node }

// Turn is part of frontier.Grants.
func (g grants) Turn(k frontier.LimitKey) frontier.GrantTurn {
	t := g.member.Turn(grantKey(k))
	return frontier.GrantTurn{Free: t.Free, After: t.After}
}

// Begin is part of frontier.Grants.
func (g grants) Begin(k frontier.LimitKey) bool { return g.member.Start(grantKey(k)) }

// End is part of frontier.Grants.
func (g grants) End(k frontier.LimitKey) { g.member.End(grantKey(k)) }

// unlimited is the number of slots of a limit without one.
const unlimited = 1 << 20

// Need is part of frontier.Grants.
func (g grants) Need(n frontier.GrantNeed) {
	limit := cluster.Limit{Slots: n.Options.InFlight, Delay: n.Options.Delay}
	if limit.Slots == 0 {
		limit.Slots = unlimited
	}
	g.member.Need(grantKey(n.Key), cluster.Need{Limit: limit, Waiting: n.Waiting, Hold: n.Hold})
}

// groupKey is what the key of a group begins with; the others are networks.
const groupKey = "group "

// grantKey returns the key of a limit in the cluster.
func grantKey(k frontier.LimitKey) string {
	if k.Group != "" {
		return groupKey + k.Group
	}
	return k.Network.String()
}

// limitKey returns the limit with a key.
func limitKey(key string) (k frontier.LimitKey, ok bool) {
	if group, is := strings.CutPrefix(key, groupKey); is {
		return frontier.LimitKey{Group: group}, true
	}
	network, err := netip.ParsePrefix(key)
	return frontier.LimitKey{Network: network}, err == nil
}

// grantKeys returns the keys of the limits of a request that the cluster keeps.
func grantKeys(r *frontier.GateRequest) (keys []string) {
	for i := range r.Limits {
		if k := r.Limits[i].Key; !k.IsZero() && k.Domain == "" {
			keys = append(keys, grantKey(k))
		}
	}
	return keys
}
