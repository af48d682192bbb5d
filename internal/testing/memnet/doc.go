// Package memnet is a network in memory, for tests in virtual time: a client and servers that use
// it inside a bubble of testing/synctest block only on operations that the bubble knows, so its
// clock goes on.
//
//	network := memnet.New(memnet.Options{Latency: 20 * time.Millisecond})
//	l, err := network.Listen("tcp", "192.0.2.1:80")
//	...
//	c, err := network.Dial(ctx, "tcp", "192.0.2.1:80")
//
// Connections behave like those of TCP as far as a client can tell. Bytes arrive in order after the
// latency. A writer waits while the reader is far behind. An end arrives after the bytes before it;
// a reset arrives at once. Deadlines interrupt. There are no packets: a dial to a UDP address makes
// a stream, over which net.Resolver speaks DNS as it does over TCP.
package memnet
