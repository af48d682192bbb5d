// Package membership makes a process a node of a cluster. It drives the state machine of
// internal/cluster with a clock and with NATS: it writes and follows the registers, sends the
// messages about grants, and tells the owner of the process which engines to open and to close.
//
// # Registers
//
// The registers are subjects of one stream: PREFIX.member.NODE and PREFIX.epoch.SHARD. A write has
// the header Nats-Expected-Last-Subject-Sequence, so JetStream takes it only on the condition that
// the state machine names. A write has one of three results. It was written; it was refused, because
// the register has another sequence (error 10071); or the result is not known: there was no answer,
// or another write to the register was under way (error 10164). After an unknown result the register
// is read. Each message names the process and the number of its write, so a process that sees its own
// message, in a read or in what it follows, knows that this write has succeeded.
//
// While there is no connection, writes and messages are lost at once; nothing is kept for later. The
// state machine repeats what is still of use.
//
// # Trust
//
// A [Holding] is what an engine has of its shard. It makes a [Request] for each request of the engine.
// The context of a request ends when the trust of the node, a grant or the holding ends, and Check says
// whether the request may still be written. All of them read the same clock, which counts while the
// machine sleeps. On one machine there is no holding: a nil *Holding allows everything.
//
// # Goroutines
//
// [Node.Run] is the loop: it lets time pass for the state machine and carries out its actions. It
// starts six goroutines and waits for them: one follows the registers, one sends messages about
// grants and one takes them, one takes commands of an operator, one breaks off requests, and one watches
// over the copies on the servers.
// Each write and read of a register is a goroutine of its own, with a bound on their number and on
// their time. The state machine is behind a lock under which nothing blocks.
package membership
