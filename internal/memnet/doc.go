// Package memnet is a network in memory, for tests in virtual time: a client and servers that talk over it inside a
// bubble of testing/synctest block on nothing that the bubble cannot see, so its clock goes on.
//
//	network := memnet.New(memnet.Options{Latency: 20 * time.Millisecond})
//	l, err := network.Listen("tcp", "192.0.2.1:80")
//	...
//	c, err := network.Dial(ctx, "tcp", "192.0.2.1:80")
//
// Connections behave like those of TCP as far as a client can tell: what is written arrives in order after the latency,
// a writer waits while the reader is far behind, an end and a reset arrive after the bytes before them (a reset at
// once), and deadlines interrupt. There are no packets: a dial to a UDP address makes a stream, over which
// net.Resolver speaks DNS as it does over TCP.
package memnet
