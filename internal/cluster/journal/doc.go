//go:build !core

// Package journal keeps the logs of the shards of a cluster in NATS JetStream. The log of a shard is
// the truth, and the database of its engine is a view of it: each commit is appended here before it
// counts, and a node that takes a shard over makes its database of the newest snapshot and the log.
// On one machine nothing of this package is used.
//
// # Subjects
//
// All streams and subjects begin with one prefix, here P. The stream P_log has:
//
//	P.log.SHARD     the records of a shard, as storage.CommitTo writes them
//	P.epoch.SHARD   who owns the shard; the sequence of the last message is the fence
//	P.member.NODE   the registers of the nodes
//
// The stream P_in has P.in.SHARD, URLs that other shards have found. The object store P_snapshots has
// the databases.
//
// # Appending
//
// A message of a log is taken only if the last message of the shard's epoch is the claim of the
// writer. So nothing that a former owner sends changes a log, however late it comes. With several
// replicas only one message behind a fence may be in flight, so a shard has one. A record larger than
// a message of the server is several messages, and counts with the last of them; an incomplete one at
// the end of a log has never happened.
//
// An answer that is lost is settled by reading the last message of the log. If the message is not
// there it is sent again. A message that is in the log twice counts once, because records are numbered.
//
// # Reading
//
// What a server answers may be old. So Replay reads the log together with the epochs, in the order of
// the stream, until it comes to the claim of the reader: behind that only the reader can append.
//
// # Trust
//
// A message may be anything: lengths, counts and what it unpacks to are bounded, and a sum covers each
// record and each snapshot. What is of a newer version is refused, and nothing is skipped.
//
// # Goroutines
//
// This package starts none. Those of the NATS client belong to its connection.
package journal
