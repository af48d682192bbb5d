// Package testweb is a small web on loopback addresses, for the demo, the
// tests and the benchmarks. It serves any number of sites by host name, each
// at an address of its own, answers DNS for their names, and keeps a record of
// every request it served, so that politeness can be judged where it counts:
// at the server.
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
// All sites of a web share one port. Where the system has no loopback address
// but 127.0.0.1 (macOS), all of them share that address too.
//
// # What the times mean
//
// A request's Start is read just after its first byte came from the kernel:
// never before the client sent it. Its End is read just before the last bytes
// of the response are handed to the kernel: never after the client saw the
// response end. A measured gap (from an End to the next Start) is therefore
// never shorter than the gap the client left, and measured requests in flight
// are never more than there were. Every violation a Log shows is a true one and needs no
// tolerance; what can escape it is a violation smaller than a write and a
// read on the loopback.
//
// Where the client goes away before the response is complete (a timeout, a
// crash), End is the moment the server noticed, which may be a little later
// than the client's; such a request is marked Aborted. Times advance with
// the monotonic clock alone, so a step of the wall clock does not disturb them.
// Requests are taken to have no body, as a crawler's have none.
//
// # Ready-made webs
//
// Demo returns the web of "amble demo" with the Facts about it: what a correct
// crawler must fetch, may fetch and must never fetch. Mesh returns an
// arithmetical web of any size whose pages cost next to nothing to serve.
package testweb
