// Package shards is a process that crawls some shards of a cluster. It opens, runs and closes the
// engines of the shards that the node owns: membership.Node says which. On one machine
// nothing of this is used.
//
// # The life of a shard on a node
//
//	claimed   membership.Node has written the epoch of the shard, and opens the engine
//	opened    a missing database is made of the newest snapshot. The engine replays the log behind it
//	crawled   each commit is in the log before it counts. Each request has a permit, which ends with
//	          the trust of the node. All hosts have a restart hold
//	closed    in an orderly way, with a last commit; or at once, without one
//
// The directory DataDir/shards/NNNNN of the shard stays behind. If the node owns the shard again, it
// replays what the log has beyond it; if the log does not reach back that far, a snapshot replaces the
// database. The output files are in the same directory and stay on the node that made the requests. The
// database is removed when another node has owned the shard for Options.KeepDatabases (leftovers).
//
// An engine that ends is reported to membership.Node, with an error only if this node cannot run
// engines: its disk fails, for example. The node then hands over all shards. While the log cannot be
// reached the engine waits. One that cannot begin for this reason ends, and the node claims the shard
// again: an epoch serves for one run, because Replay reads up to the claim.
//
// # What crosses shards
//
// Where a redirect of a seed leads out of the scope is published before the commit that relies on it.
// All nodes follow that (scope). It is in the stream of the logs, so an engine that has read it up to the
// claim of its shard has the scope of the engine before. Messages with URLs name the scope that the URLs
// were judged by.
//
// A robots.txt that redirects to a host of another shard is fetched there by the owner of that shard, under
// the limits of the host, and judged where it belongs (robotsRequests). A query is sent again until it is
// answered, so it outlives the owner.
//
// With MaxPages a register divides the pages among the shards (allotment, pageBlocks).
//
// With ExitWhenDone, or when MaxPages is reached, the crawl is over when all shards are at rest and have
// read all that was published for them (census). The owner of shard 0 finds out, and all nodes leave. A
// node that does not hear of it takes the shards over, finds out itself and leaves too.
//
// # Goroutines
//
// One of a node reads the scope, one removes databases (leftovers), and two wait for the end of the crawl.
// One drives each engine from its opening to its end (run.drive), one makes its snapshots, and one answers
// queries of other nodes. They end with the holding of the shard. Those of the engines are in
// docs/ARCHITECTURE.md.
//
// # What is not promised yet
//
//   - Limits of addresses, ranges and groups are kept between the shards of one node, and not between
//     nodes. Hosts of several nodes that share an address may receive more requests together than
//     the limit allows.
//   - Limits of the whole process, such as requests a second, are those of each node.
//   - recrawl.budget is refused: Options.Validate names it.
package shards
