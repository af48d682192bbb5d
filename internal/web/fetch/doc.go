// Package fetch performs one HTTP GET or HEAD at a time. It bounds everything that a hostile server could
// stretch: time (connect, TLS, header, idle body, total), header bytes, body bytes on the wire and
// after decoding, nested content encodings, interim responses, and reach (which addresses may be
// dialled).
//
// The package never decides what to do next. It follows no redirect, repeats nothing, keeps no
// cookie unless an option names the host, and sends no body: one call of [Client.Do] puts exactly
// one request on the wire, or none. The caller does retries, redirects and delays, and chooses the
// address to dial: [Request].Address is pinned, whatever the host name resolves to at that moment.
//
// The body of a [Response] is a [spool.Content]. It is in memory while it is small and there is
// room, else in a file; [Response.Close] frees both. With Options.Capture, Response.Wire has the
// exchange as the two sides sent it.
//
// # Why not http.Client
//
// net/http silently sends a GET a second time when a reused connection breaks under it. It also
// pools connections by host name, so a changed address would go on using the old connection. Here
// the key of the pool is scheme, host name and address, and the exchange itself is a write and a
// call of [http.ReadResponse] on that connection. The client speaks HTTP/2 when the server picks it
// in the TLS handshake, through [http.ClientConn], which is one connection without a retry loop. A
// connection carries one request at a time in both protocols.
//
// # Reading the source
//
// Start at Client.Do (client.go). It takes a connection (pool.go, dial.go; conn.go decides when a
// kept one may be used again), does the exchange (http1.go, http2.go; frames.go bounds what HTTP/2
// may carry) and receives the body (body.go). A watch ends each phase in time (watch.go). The
// complete body is decoded (decode.go) in memory that is reserved first (window.go), with bounded
// effort (effort.go). errors.go and classify.go name the failures; Client.excuse decides which
// failures are not held against a server. resolve.go has Client.Resolve; reach.go decides which
// addresses may be dialled. header.go, credential.go and cookies.go make the header of a request.
package fetch
