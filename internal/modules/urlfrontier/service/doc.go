//go:build !core

// Package service serves the protocol of URLFrontier 2.6 on the address urlfrontier.listen: to clients
// of gRPC, gRPC-Web and Connect, over HTTP/2 with or without TLS, on one port. docs/URLFRONTIER.md says
// how to use it, and what differs from the reference implementation.
//
// The service works on Crawls, which opens the crawls of the process, and on Crawl, one of them. The
// RPCs are in a file for each subject. PutURLs and PutDiscovered share one pipeline (intake.go): a
// reader takes messages from the stream while earlier ones are committed, and all that have come
// meanwhile are committed together. So one stream needs no client of many threads to be fast, and the
// puts of a stream keep their order.
//
// Everything that a client sends is bounded: its connections, streams, messages, metadata and headers,
// what waits for a commit, and the time for reading and writing (limits.go).
package service
