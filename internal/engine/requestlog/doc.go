//go:build !core

// Package requestlog keeps a record of every request of a crawl: its time, its host, its result,
// and the delay and the robots.txt that were in force. "amble audit" reads it; docs/AUDIT.md says
// what the log proves and what it cannot prove.
//
// One goroutine writes a [Log]: a record at the end of each request, with one write(2) and no
// fsync, which survives kill -9. [Read] may run at the same time in any process.
//
// # Files
//
// The log is a directory of files requests-NNNNNNNNNN.log. Each file is complete in itself: it
// begins with its process, and contains everything that its requests refer to, including the
// robots.txt files. So the oldest file can be deleted at any time. A process begins its own file
// and never changes that of another process.
//
// A file is a sequence of frames: the length of the payload (uvarint), the payload, and its CRC-32C
// (4 bytes, little endian). The first byte of a payload is its type, and fields.go describes the
// fields of each type:
//
//	0 header   magic | version | process | when this file was begun | offset in the start ledger
//	1 request  one that ended
//	2 context  origin, address and policy, common to requests; numbered from 0
//	3 policy   a robots.Record without its body, and the version of the body; numbered from 0
//	4 body     version, length, octets (DEFLATE where that is shorter; none where there was no room)
//	5 lost     the number of requests that could not be written; numbers begin at 0 again
//	6 open     a request of an earlier process whose end is unknown
//	7 sync     its own offset | requests, frames of type 5, contexts and policies before it |
//	           the instants of the last request
//
// Numbers are varints, signed where they may be negative. Instants are nanoseconds on the monotonic
// clock of the process, each as the difference from the one before. A number beyond its bound is
// its bound.
//
// After a damaged frame, later frames can be counted but not understood: the reader continues at
// the next frame of type 7. The writer makes one at least every 64 KiB and a frame. Contexts and
// policies that were defined in the damaged part stay unknown, and so do the requests that refer to
// them. Version 1 of the format had no such frames: there, damage ends the file.
package requestlog
