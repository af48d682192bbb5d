package cluster

import (
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Shard is the number of a shard, from 0.
type Shard int32

// ShardOf returns the shard of a host in a cluster of so many shards. The hosts of a registrable
// domain are in one shard; an address literal is hashed as it is. host is a host as
// [weburl.URL.Host] returns it.
func ShardOf(host string, shards int) Shard { return GranterOf(weburl.RegistrableDomain(host), shards) }

// GranterOf returns the shard whose owner grants the shared limit with this key.
func GranterOf(key string, shards int) Shard { return Shard(xxhash.Sum64String(key) % uint64(shards)) }

// candidate is a node in the rendezvous hashing of a shard: each node has a score for each shard,
// and the shard belongs to the node with the best score. A node that comes takes shards only for
// itself, and a node that goes leaves only its own (Thaler and Ravishankar, 1998).
type candidate struct {
	hash   uint64 // of the name
	weight uint16
}

// Candidates are the nodes that may own shards, for somebody who wants to know which node should own
// which.
type Candidates struct {
	names []string
	all   []candidate
}

// Add adds a node. One with the weight 0 takes no shards.
func (c *Candidates) Add(node string, weight uint16) {
	if weight > 0 {
		c.names, c.all = append(c.names, node), append(c.all, candidate{xxhash.Sum64String(node), weight})
	}
}

// Best returns the node that should own a shard, or nothing if there is no candidate.
func (c *Candidates) Best(s Shard) (node string) {
	best := 0
	for i, candidate := range c.all {
		if i == 0 || candidate.beats(c.all[best], s) {
			best, node = i, c.names[i]
		}
	}
	return node
}

// beats reports whether c has a better score for a shard than d. Scores are -ln(u)/weight with u
// uniform in (0, 1), and the smallest is the best, so the shares are proportional to the weights.
// Equal weights compare u itself, without a logarithm.
func (c candidate) beats(d candidate, s Shard) bool {
	a, b := mix(c.hash^mix(uint64(s))), mix(d.hash^mix(uint64(s)))
	if c.weight == d.weight {
		return a > b || a == b && c.hash > d.hash
	}
	return cost(a)/float64(c.weight) < cost(b)/float64(d.weight)
}

// cost is -ln(u) of u = (x+1/2) / 2^64. On processors whose logarithms differ in the last bit,
// nodes can only disagree about scores that agree in 50 bits.
func cost(x uint64) float64 { return -math.Log((float64(x) + 0.5) / (1 << 64)) }

// mix is the finalizer of SplitMix64: each bit of x changes each bit of the result with
// probability 1/2.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
