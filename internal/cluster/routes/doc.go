// Package routes carries requests between the nodes of a cluster, over NATS.
//
// What travels is HTTP: Serve serves a handler to the other nodes, and Do sends a request to one of
// them. So a handler of a node needs to know nothing of NATS, bodies of any length go at the pace of
// their reader, and whoever goes away ends the work at the other end.
//
// # Connections
//
// A connection between two nodes is a stream of messages each way, from PREFIX.route.NODE.ID of the one
// to that of the other, with the same ID. A message names the subject of its sender as the one to reply
// to. Each begins with the version of the format, its kind and a number:
//
//	open     the first message of whoever dials, each second until it is answered
//	accept   the answer
//	data     up to 32 KiB of the stream. The number counts those before it
//	credit   the number says how many data messages the other side has taken. It is also sent every 5
//	         seconds, so that both sides know of each other
//	end      nothing follows. The number is that of a data message
//	refuse   there is no such connection, or there is no room for one
//
// At most 16 data messages that were not taken are under way. NATS may lose messages: a gap in the
// numbers breaks the connection, as does a silence of 15 seconds. If nobody subscribes to the subject of
// a node, the servers say so at once. Whatever else a peer sends breaks its own connection at most.
//
// Nodes trust each other: who may publish under the prefix of the cluster may do anything to it.
//
// # Goroutines
//
// One takes messages and one watches over the connections. Each connection has two, one for each
// direction. Close ends them and waits.
package routes
