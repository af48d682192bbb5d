// Package requestlog keeps a record of every request that a crawl has made: when, to whom, what
// came of it, and which delay and which robots.txt were in force. It is what "amble audit" proves
// from; docs/AUDIT.md says what it proves and what it cannot.
//
// A [Log] is written by one goroutine, a line at the end of each request with one write(2) and no
// fsync, which survives kill -9. [Read] may run beside it in any process.
//
// # Files
//
// The log is a directory of files requests-NNNNNNNNNN.log. Each is complete in itself: it begins
// with who wrote it, and holds whatever its requests refer to, the robots.txt files among it. So
// the oldest file can go at any time. A process begins a file of its own and never touches one that
// another has written.
//
// A file is a row of frames: the length of the payload (uvarint), the payload, its CRC-32C (4
// bytes, little endian). The first byte of a payload is its type, and fields.go describes the
// fields of each:
//
//	0 header   magic | version | process | when this file was begun | place in the start ledger
//	1 request  one that ended
//	2 context  origin, address and policy that requests have in common; numbered from 0
//	3 policy   a robots.Record without its body, and the version of the body; numbered from 0
//	4 body     version, length, octets (DEFLATE where that is shorter; none where there was no room)
//	5 lost     how many requests could not be written; numbers begin at 0 again
//	6 open     a request of an earlier process whose end nobody saw
//	7 sync     where it stands | requests, frames of type 5, contexts and policies before it |
//	           the instants of the last request
//
// Numbers are varints, signed where they may be negative. Instants are nanoseconds on the monotonic
// clock of the process, each as the difference from the one before. A number beyond its bound is
// its bound.
//
// Behind a frame that is damaged, what follows can be counted and not be understood: a reader goes
// on at the next frame of type 7. The writer makes one at least every 64 KiB and a frame. Contexts
// and policies that were defined in the damaged part stay unknown, and so do requests that refer to
// them. Version 1 of the format had no such frames: there, damage ends the file.
package requestlog
