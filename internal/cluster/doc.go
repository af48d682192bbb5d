// Package cluster decides which node crawls which shard, and what each node may request under the
// limits that it shares with others. It is pure: it does no I/O, reads no clock and starts no
// goroutine. A shell tells a [Node] what happens and when, and carries out its actions.
//
// The shell is internal/cluster/membership. On one machine nothing of this is used.
//
// # The promise
//
// A host belongs to a shard ([ShardOf]), and at each instant at most one node makes requests to the
// hosts of a shard. The requests that all nodes have in flight under a shared limit are never more
// than it allows, and its delay is kept between any two of them. This holds whatever happens to
// messages and processes. What it needs is in the section about clocks.
//
// # The log
//
// All that the nodes agree on is in one log with a register for each node (member.NODE) and one for
// each shard (epoch.SHARD). A register is the newest message of its subject. The log does one thing
// that the protocol rests on: it takes a message only if the newest one of the register still has
// the sequence that the writer expects. So of two writers that have read the same state one is
// refused, and a message that arrives late or twice does nothing.
//
// Reading proves little, since what is read may be stale. A message that was read was written at some
// time before; that is all. In particular an empty register proves nothing. Each decision below is
// therefore a conditional write, or follows from a message that exists.
//
// # Membership and trust
//
// A node begins a membership with a message in its register, and repeats it as a heartbeat, each on
// condition of the one before. The sequence of the first message identifies the membership ([Member]).
// A heartbeat that was written gives trust:
//
//	trusted until = instant before the heartbeat was sent + TTL - Margin
//
// Without trust a node makes no request. It starts none with less than LastStart of trust left, checks
// again between connecting and writing the request, and breaks off what is in flight when trust ends.
// A process that was stopped for a minute finds its trust gone and sends nothing.
//
// If trust ends because the log did not answer, the node keeps its shards and waits: a later heartbeat
// that is written proves that nobody has taken them. If a heartbeat is refused, trust ends at once, and
// the register is read. If the membership is over, the node breaks off its engines and begins another.
//
// # Taking over
//
// A membership ends with a seal: a message in the register of the node that says so. A node seals its
// own register when it leaves. Another node may seal it when it has seen nothing new in the register
// for a TTL, by its own clock, on condition that the last message is still the one that it has seen:
//
//	owner   heartbeat sent ........... trust ends
//	              |  written                |
//	taker          '--- seen ----------------+-- a TTL later: seal
//
// The heartbeat was seen after it was written, and written after it was sent. So a TTL after it was
// seen is later than a TTL after it was sent, and the trust that it gave ends Margin before that. No
// later heartbeat was written, or the seal is refused. None will be, because it would be refused. So
// the seal proves that the trust is over, to everybody who sees it, and they need not wait again. The
// message that begins a later membership of the node proves the same of the earlier ones: a process
// writes it when it knows that its own trust is over, or that its predecessor has ended
// (Options.Predecessor), or else waits for a TTL of silence as everybody does.
//
// The trust that a process has lost by its end may still have been the reason for grants. So a seal says
// whether another node has written it (Key.Silent): then a TTL of silence is over, and they have ended too.
//
// # Ownership
//
// Who should own a shard follows from the live members by rendezvous hashing, the same on all nodes
// but for what they have not seen yet. Who owns it says its epoch. A node writes the epoch of a shard
// that it should own, on condition of the one that it has seen, if
//
//   - the shard never had an owner, or the last one has released it;
//   - or the membership of the last one is over;
//   - or it is the owner itself, and its engine has ended.
//
// The sequence of the epoch fences the log of the shard, so commits of an earlier owner are refused. It
// is used for one run of the engine only. All hosts of the shard have a restart hold of their delay.
//
// If the shard should belong to another live node, the owner stops the engine in an orderly way and
// releases the shard when no request is in flight. A node with weight 0 should own nothing, so it hands
// over all that it has ([Node.Drain]). Disagreement about who should own a shard costs time but never
// safety, since only the epoch decides.
//
// # Grants
//
// Some limits belong to hosts of several shards: those of an address, a range of addresses or a group.
// Such a limit hashes to a shard ([GranterOf]), whose owner grants its slots to the nodes that use it. A
// node keeps the limit over its own shards with what it has: it is one user, however many shards it has.
// A limit with a delay has one slot, so its grants are turns. A request says what the limit is by the
// settings of the user, and the strictest settings count.
//
// A grant has the same form as trust. The user may use its slots until
//
//	instant before the request was sent + min(TTL - Margin, trust that the granter had left)
//
// and the granter counts them for a TTL after it has handled the request. A user that still needs its
// slots makes another request when half of its time is over. A user alone gets all slots, and keeps them
// while its requests are answered. If others come, its grants tell it to keep less.
//
//   - Slots go back only by a request, which says how many the user keeps. It keeps no more from the
//     instant before it sends that, and takes no answer to an earlier request. So an answer under way
//     and a request under way never make the granter count less than the user has. When slots have
//     expired, the next request keeps none. One that gives slots back, or wants none any more, is repeated
//     until it is answered.
//   - A user whose membership is over has no slots, because its requests have ended.
//   - A granter that releases its shard leaves what it has granted in the release ([Handover]), so the
//     next one goes on at once. Whoever claims the shard has seen the release, because its claim has the
//     release as its condition. The times in it count from the instant at which it was seen: that is
//     later than it was written, so no slot is granted again too early.
//   - Otherwise a new granter does not know what the one before has granted, and waits until that has
//     ended. Meanwhile it only confirms what users say that they keep, which the one before has granted.
//     The first owner of a shard need not wait, and neither must an owner whose engine runs again.
//   - If the one before was sealed after a TTL of silence, its grants have ended with its trust: the parts
//     of the time that a grant and the trust before it last are counted by one clock each, so they are
//     as exact as if one clock had counted the trust. Grants of owners before that one were made before its
//     claim. So they have ended a TTL after that was seen, mostly long ago.
//   - In all other cases, as after a process that was killed and began again at once, all grants were made
//     before the claim of the new granter, and end within a TTL after it.
//   - After slots come back used, or expire, the delay runs from that instant, since the last request
//     may have ended just then. The time that a grant tells the user to wait counts from its arrival.
//   - A slot that another user waits for is given back after one request, or a moment after it could
//     have been used, unless it is held for a request that waits for a slot of another limit as well
//     ([Need]). Users wait for limits in the same order, so there is no cyclic wait.
//
// # Clocks
//
// Instants are of a clock that counts while the machine sleeps (CLOCK_BOOTTIME) and is never set. No
// message has an instant of another node's clock, and the clock of the log is not used at all. What is
// needed is that clocks run at nearly the same rate: if each is wrong by a part e of the time,
//
//	(TTL - Margin) / (1 - e) < TTL / (1 + e)
//
// must hold, which the default options do for e up to 5 %. Times that one node tells another to wait are
// made longer by Margin/TTL, for the same reason.
//
// # What is not promised
//
//   - A process that is stopped between its last check and the write of a request sends that one request
//     when it goes on. The requests that it has in flight stay with the servers until it goes on.
//   - A virtual machine that is paused with its clock, or restored from a snapshot, trusts itself for as
//     long as it did before. Its commits are refused.
//   - A node whose engine cannot open, because its disk fails for example, still sends heartbeats. Its
//     shell has to drain it.
//
// # Where to read
//
//	message.go     registers, messages, actions
//	membership.go  heartbeats, trust, joining and leaving
//	members.go     the registers of all members, silence, who is live
//	ownership.go   epochs, engines, claims and releases
//	granter.go     grants: both sides; grants.go: the methods of Node for them
//	handover.go    what a granter leaves to the next one
//	world_test.go  the faults that the model is run through, with process_test.go and request_test.go
package cluster
