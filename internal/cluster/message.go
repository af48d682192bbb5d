package cluster

import "time"

// Instant is a reading of the clock of one node that also counts while the machine sleeps
// (CLOCK_BOOTTIME), since an arbitrary beginning. Instants of two nodes have nothing in common, so
// no message contains one.
type Instant time.Duration

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Sequence is the number that the log gives to a message. It grows over all messages of all
// registers. 0 stands for a register without a message.
type Sequence uint64

// Key is what the register of a member holds: the newest message of member.NODE.
type Key struct {
	Process     uint64   // a random number of the process, by which it recognises its own key
	Incarnation Sequence // of the message that began the membership; 0 in that message itself
	Weight      uint16   // the share of the shards that the node takes; 0 if it wants none
	Sealed      bool     // the membership is over: the node has left, or another has sealed it
	Silent      bool     // in a seal: another has written it, after a TTL of silence
}

// Member is one membership of a node. A process may have several, one after the other.
type Member struct {
	Node        string
	Incarnation Sequence
}

// Epoch is what the register of a shard holds: the newest message of epoch.SHARD. The sequence of
// this message fences the log of the shard.
type Epoch struct {
	Owner    Member
	Released bool // the owner has stopped its engine
	// Handover is what the owner has granted. It is nil if the shard is not released, or the owner does
	// not know all of it.
	Handover *Handover
	// Fault is why the owner does not open the engine; nil: it does.
	Fault *Fault
}

// GrantRequest is what a node sends to the granter of a shared limit.
type GrantRequest struct {
	Key    string // of the limit
	Limit  Limit  // by the settings of the user
	User   Member // the node that makes the requests
	Number uint64 // grows with each request of the user. One that is repeated has the same
	Keep   int    // slots that the user still has. It has given up all others before it sent this
	Used   bool   // requests were made with the slots that it has had last
	Want   int    // slots that it has a use for
}

// Grant is the answer to a [GrantRequest]. The slots are valid for TTL - Margin from the instant at
// which the user sent the request with this number, but no longer than For. A grant never takes a slot
// away.
type Grant struct {
	Key    string
	User   Member
	Number uint64        // of the newest request that the granter knows
	Slots  int           // slots that the user has, those that it kept included
	For    time.Duration // the trust that the granter had left when it answered
	After  time.Duration // from the arrival of the grant to the earliest start of a request
	Share  int           // slots that the user should keep at most, because others wait
}

// Limit is what hosts of several shards share. If the users of a limit have different settings, the
// strictest ones count.
type Limit struct {
	Slots int           // requests at a time; 1 if Delay is not zero
	Delay time.Duration // from the end of a request to the start of the next
}

// maxSlots bounds the slots of a limit.
const maxSlots = 1 << 20

// stricter returns the limit that keeps both. What is out of bounds becomes what is nearest.
func (l Limit) stricter(m Limit) Limit {
	s := Limit{Slots: max(1, min(l.Slots, m.Slots, maxSlots)), Delay: min(max(l.Delay, m.Delay, 0), never)}
	if s.Delay > 0 {
		s.Slots = 1
	}
	return s
}

// Action is what a [Node] wants its shell to do. Only the types of this package implement it.
type Action interface{ action() }

// The actions. A write takes effect only if the newest message of its register has the sequence
// Expected (0: if there is none). The shell answers a write with [Node.KeyAnswer] or
// [Node.EpochAnswer] if it learns the result, and a read with [Node.KeySeen] or [Node.EpochSeen].
// Writes, reads and messages to other nodes may be lost, late or repeated. While the log is away the
// shell should lose them: a node sends again what is still of use.
type (
	// WriteKey writes the register of a member.
	WriteKey struct {
		ID       uint64
		Node     string
		Expected Sequence
		Key      Key
	}
	// ReadKey reads the register of a member. The result may be stale.
	ReadKey struct{ Node string }
	// WriteEpoch writes the register of a shard.
	WriteEpoch struct {
		ID       uint64
		Shard    Shard
		Expected Sequence
		Epoch    Epoch
	}
	// ReadEpoch reads the register of a shard. The result may be stale.
	ReadEpoch struct{ Shard Shard }
	// OpenEngine brings the view of a shard up to date and starts its engine, with a restart hold for
	// every host. The log of the shard is fenced by Epoch.
	OpenEngine struct {
		Shard Shard
		Epoch Sequence
	}
	// StopEngine ends the engine of a shard. If it is orderly, requests in flight end and the last
	// commit is made; else requests are broken off and nothing more is committed. The shell reports
	// the end with [Node.EngineStopped].
	StopEngine struct {
		Shard   Shard
		Orderly bool
	}
	// SendGrantRequest sends a request to the owner of the shard GranterOf(Request.Key).
	SendGrantRequest struct{ Request GrantRequest }
	// SendGrant sends a grant to the node Grant.User.
	SendGrant struct{ Grant Grant }
	// NameTaken says that another live process has the name of this node. The shell ends with an error.
	NameTaken struct{}
	// Left says that the node has left the cluster in an orderly way. The shell may end.
	Left struct{}
)

func (WriteKey) action()         {}
func (ReadKey) action()          {}
func (WriteEpoch) action()       {}
func (ReadEpoch) action()        {}
func (OpenEngine) action()       {}
func (StopEngine) action()       {}
func (SendGrantRequest) action() {}
func (SendGrant) action()        {}
func (NameTaken) action()        {}
func (Left) action()             {}
