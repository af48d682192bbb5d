// Package server answers questions about a running crawl over HTTP, on the address server.listen.
//
// docs/API.md describes it for people, /api/v1/openapi.json for programs. The operations are registered with huma, which checks what comes in and
// makes the description; each file registers those of one subject (hosts.go, urls.go, control.go and so on). Tests hold every answer against the
// description.
//
// Lists come in pages that take no walk over the store. Streams are JSON objects, one a line (application/jsonl), and come at the client's pace. If an answer
// cannot be completed the connection breaks. An error is an application/problem+json object (RFC 9457).
//
// # Who may ask
//
// The guards stand around everything, in this order: how often a client may ask, the name in the Host header (DNS rebinding), the origin of what
// changes something (cross-site requests), the token. /healthz and /readyz ask for no token. Headers, bodies, connections and times are bounded.
//
// # How to find it
//
// Start writes the address in use to the file server.addr in the data directory, and Close removes it. Ask reads
// that file and puts a question to the crawl it names. A file that a crash left behind does no harm: it also holds the
// identity of the process, every answer repeats it, and Ask believes no other.
package server
