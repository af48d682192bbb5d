package main

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
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

// checkDescriptors compares the limit of open files with the needs of the crawls; several is nil if there is one. It
// warns if connections will be closed early, or fewer crawls may be open than several would open, and fails if
// workers would have to wait for each other.
func checkDescriptors(limit int, o *crawl.Options, several several, warn func(text string)) error {
	least, full := o.Descriptors()
	fewer := ""
	if several != nil {
		least, full, fewer = several.descriptors(limit, least, full)
	}
	may := fmt.Sprintf("this process may have %d files and connections open", limit)
	raise := fmt.Sprintf("raise the limit (ulimit -n %d, or LimitNOFILE=%d of a service)", full, full)
	switch {
	case limit < least:
		return console.Exit(console.ExitUsage, fmt.Errorf("%s, and %d workers need %d at least: %s, or lower "+
			"crawl.workers", may, o.Workers, least, raise))
	case fewer != "":
		warn(may + ": " + fewer + "; " + raise)
	case limit < full:
		warn(fmt.Sprintf("%s, and %d workers may take %d: fewer connections are kept between requests; %s", may,
			o.Workers, full, raise))
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
