// Package zoo runs the bad servers that a crawler meets on the web: servers that stall, lie, never
// end, or break off. Each has a listener of its own on 127.0.0.1. A test crawls them and checks the
// results.
//
// Every server responds to the first request, for robots.txt, as a good server does, and misbehaves
// from the next connection on. So the tests cover the outcome of a page, and not just requests that
// robots.txt prevents.
package zoo
