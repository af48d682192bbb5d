//go:build !core

// Package node runs the crawls of one process. Each crawl is an engine with a data directory of its
// own. The DEFAULT crawl has the data directory of the settings and lives as long as the node. Others
// live in directories below it, one for each crawl id, and are open while somebody uses them.
//
// # The life of a crawl
//
//	create  Use makes the directory, durably, before it opens the engine
//	open    Use opens the engine and runs it; whoever uses it has a reference. So does the start of the
//	        node for those that were open at the end of the last process, or whose leases fetchers had:
//	        a file "open" in the directory says so
//	idle    without references and without work for Options.Idle: its run ends, and it is closed
//	delete  its run ends; its directory gets another name, durably, and is then removed. A directory
//	        with such a name is removed when the node opens
//
// One goroutine drives each open crawl (openCrawl.drive) from its opening to its end. The crawls of a
// node are in one map under one lock, which nobody holds while something waits or uses the disk.
package node
