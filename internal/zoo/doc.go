// Package zoo serves what a crawler meets in the wild and would rather not: servers
// that stall, lie, never end, or break off, each an animal behind a listener of
// its own on 127.0.0.1. A test crawls them and sees what becomes of it.
//
// Every animal answers the first request, which is for robots.txt, as a good
// server does, and shows its nature from the next connection on. So what is
// tested is what a page comes to, not that nothing is asked.
package zoo
