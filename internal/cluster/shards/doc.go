//go:build !core

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
// database is removed when another node has owned the shard for Options.KeepDatabases (oldDatabases).
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
// the limits of the host, and judged where it belongs (robotsRequests). The query is sent again until it is
// answered, so it outlives the owner (owners).
//
// With MaxPages a register divides the pages among the shards (pageQuota, pageBlocks), and with a recrawl
// budget another one divides that (recrawlBudget).
//
// With ExitWhenDone, or when MaxPages is reached, the crawl is over when all shards are at rest and have
// read all that was published for them (census). The owner of shard 0 finds out, and all nodes leave. A
// node that does not hear of it takes the shards over, finds out itself and leaves too.
//
// # Limits that shards share
//
// The engines of a node share a frontier.SharedGate, which keeps the limits of addresses, ranges and groups
// over its shards. It uses what the node has of each limit by grants from another shard's owner, or its
// own (grants). So the node is one user of a limit, and a node that needs it alone sends a message about
// it only each half of a TTL. A request has a permit with its limits, and is broken off when a grant of
// one ends.
//
// For a TTL after a shard has changed its owner, no more slots of limits that hash to it are granted;
// nodes that have them keep them. So hosts of a shard that moves may wait for that long.
//
// Requests and received bytes a second are limited for all nodes together: each has its part by its
// weight (nodeShare). A node that joins others uses nothing of these limits for a TTL.
//
// # Goroutines
//
// One of a node serves other nodes, one reads the scope, one the desired state of the crawl, one removes
// databases (oldDatabases), one follows the weights of the members, one makes snapshots, one reads the register of
// pages, two read and write the register of recrawls, and two wait for the end of the crawl. One drives each engine
// from its opening to its end (run.drive), one gives it the desired state, and one takes and
// returns its pages. They end with the holding of the shard. Those of the engines are in docs/ARCHITECTURE.md.
//
// # What is not promised
//
//   - After the restart of a node that was killed, hosts with limits whose granter it was wait for a TTL: the
//     new granter cannot know that nobody has an earlier grant. If others take over after the TTL of silence,
//     there is no second one.
//   - Requests a second are more than the limit for as long as nodes that start together do not see each
//     other.
package shards
