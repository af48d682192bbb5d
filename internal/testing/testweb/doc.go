// Package testweb is a small web on loopback addresses, for the demo, the tests and the benchmarks.
// It serves any number of sites by host name, each at an address of its own, answers DNS for their
// names, and records every request, so that politeness can be measured at the server's side.
//
//	web, err := testweb.New(testweb.Config{Sites: []testweb.Site{{
//		Host: "news.amble.test",
//		Handler: testweb.Routes{
//			"/robots.txt": testweb.Robots("User-agent: *\nCrawl-delay: 1\n"),
//			"/":           testweb.Page("News", "/a", "//docs.amble.test/"),
//		},
//	}}})
//	defer web.Close()
//	// crawl web.URL("news.amble.test", "/") with the resolver web.ResolverAddr()
//	short := web.Requests().Host("news.amble.test").ShortGaps(time.Second)
//
// All sites of a web share one port. If the system has no loopback address except 127.0.0.1
// (macOS), all sites share that address too.
//
// # What the times mean
//
// A request's Start is read just after its first byte came from the kernel: never before the client
// sent it. Its End is read just before the last bytes of the response are handed to the kernel:
// never after the client saw the response end. So a measured gap (from an End to the next Start) is
// never shorter than the gap that the client left, and measured requests in flight are never more
// than there were. Every violation in a Log is real and needs no tolerance. A Log can miss a
// violation that is shorter than a write and a read on the loopback.
//
// If the client goes away before the response is complete (a timeout, a crash), End is the moment
// when the server noticed, which may be a little later than the client's. Such a request is marked
// Aborted. Times advance with the monotonic clock alone, so a step of the wall clock does not
// disturb them. Requests are expected to have no body, like a crawler's.
//
// # Ready-made webs
//
// Mesh returns an arithmetical web of any size whose pages cost almost nothing to serve. The package
// crawlcheck has a web of stations that judge a crawler, which "amble demo" serves too.
package testweb
