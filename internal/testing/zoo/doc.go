// Package zoo runs the bad servers that a crawler meets on the web: servers that stall, lie, never
// end, or break off. Each is a host of a loopback web (testweb), at a port of its own. A test crawls
// them and checks the results.
//
// Every server responds to the first request, for robots.txt, as a good server does, and misbehaves
// from the next connection on. So the tests cover the outcome of a page, and not just requests that
// robots.txt prevents.
package zoo
