// Package fetch performs one HTTP GET at a time, bounded in everything a
// hostile server could stretch: time (connect, TLS, header, idle body, total),
// header bytes, body bytes on the wire and after decoding, nesting of content
// encodings, number of interim responses, and reach (which addresses may be
// dialled).
//
// The package never decides what to do next. It follows no redirect, repeats
// nothing, keeps no cookie unless told to, and sends no body: one call of [Client.Do] puts
// exactly one request on the wire, or none. Retries, redirects and pauses
// belong to the caller, who also says which address to dial: [Request].Address
// is pinned, whatever the host name may resolve to at that moment.
//
// The body of a [Response] is a [spool.Content], in memory while it is small and
// there is room, else in a file; [Response.Close] gives both back. With
// Options.Capture, Response.Wire has the exchange as the two sides sent it.
//
// # Why not http.Client
//
// net/http silently sends a GET a second time when a reused connection breaks
// under it, and pools connections by host name, so that a changed address
// would go on using the old one. Here the pool is keyed by scheme, host name
// and address, and the exchange itself is a write and a call of
// [http.ReadResponse] on that connection. HTTP/2 is spoken when the server
// picks it in the TLS handshake, through [http.ClientConn], which is one
// connection without a retry loop; a connection carries one request at a time
// in both protocols.
//
// # Reading the source
//
// Start at Client.Do (client.go). It takes a connection (pool.go, dial.go; conn.go
// says when a kept one may be used again), does the exchange (http1.go, http2.go;
// frames.go bounds what HTTP/2 may carry) and receives the body (body.go) under a
// watch that ends each phase in time (watch.go). The complete body is decoded
// (decode.go) in room that is reserved first (window.go) and with bounded effort
// (effort.go). What went wrong gets a name (errors.go, classify.go; Client.excuse
// tells what is not held against a server). Client.Resolve is resolve.go; which
// addresses may be reached is reach.go. What a request says beside its URL is
// header.go, credential.go and cookies.go.
package fetch
