// Package server answers questions about a running crawl over HTTP, on the address server.listen.
//
//	GET /healthz         200 and "ok" while the crawl runs; asks for no token
//	GET /api/v1/status   a crawl.Status as JSON
//	GET /api/v1/hosts    lines of inspect.Host; state, sort, limit; trailer Amble-Matching: how many there are
//	GET /api/v1/hosts/H  an inspect.HostStory
//	GET /api/v1/urls     lines of inspect.URL; host, state, reason, from, limit; trailer Amble-Next: the next from
//	GET /api/v1/url      an inspect.URLStory; url
//	GET /api/v1/export   lines of inspect.URL, all of them; host, state, reason, from, limit
//	POST /api/v1/urls    takes a list of URLs of any length (see urllist); lines of AddReport, one after each commit
//
// Lines are JSON objects (application/jsonl) and come at the client's pace. If an answer cannot be completed the connection breaks.
//
// An error is an application/problem+json object (RFC 9457). Where a token is set, every route below /api/ wants
// "Authorization: Bearer TOKEN".
//
// # Who may ask
//
// On a loopback address the Host header must name a loopback address too, so that a web page in a browser on this machine cannot
// read the API under a name of its own that leads here (DNS rebinding), and what a page of another site makes a browser send is
// refused unless it only reads. Beyond loopback a token is required by the settings.
// Headers, bodies, connections and times are bounded.
//
// # How to find it
//
// Start writes the address in use to the file server.addr in the data directory, and Close removes it. Ask reads
// that file and puts a question to the crawl it names. A file that a crash left behind does no harm: it also holds the
// identity of the process, every answer repeats it, and Ask believes no other.
package server
