package main

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/node"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/system"
)

// abortOnCrash makes a crash of the program end it by SIGABRT, which every supervisor can tell from
// an exit code. By default Go's runtime exits with 2, the code for wrong settings, after which a
// service is not restarted. Memory may hold secrets, so it is not dumped.
func abortOnCrash() {
	debug.SetTraceback("crash")
	system.ForbidDump()
}

// checkDescriptors compares the limit of open files with the needs of the crawls. It warns if
// connections will be closed early, lowers the number of crawls that may be open to what there is room
// for, and fails if workers would have to wait for each other.
func checkDescriptors(limit int, n *node.Options, warn func(text string)) error {
	o := &n.Crawl
	least, full := o.Descriptors()
	most := n.MaxOpen
	if n.MaxCrawls > 0 {
		n.MaxOpen = max(min(most, (limit-full)/node.CrawlDescriptors), 1)
		least, full = least+node.CrawlDescriptors, full+most*node.CrawlDescriptors
	}
	may := fmt.Sprintf("this process may have %d files and connections open, and %d workers", limit, o.Workers)
	raise := fmt.Sprintf("raise the limit (ulimit -n %d, or LimitNOFILE=%d of a service)", full, full)
	switch {
	case limit < least:
		return console.Exit(console.ExitUsage,
			fmt.Errorf("%s need %d at least: %s, or lower crawl.workers", may, least, raise))
	case n.MaxOpen < most:
		warn(
			fmt.Sprintf(
				"this process may have %d files and connections open: %s besides DEFAULT may be open at a time, "+
					"and not %d; %s", limit, console.Plural(n.MaxOpen, "crawl"), most, raise))
	case limit < full:
		warn(fmt.Sprintf("%s may take %d: fewer connections are kept between requests; %s", may, full, raise))
	}
	return nil
}

func closeServer(api *server.Server) error {
	if api == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	return api.Close(ctx)
}
