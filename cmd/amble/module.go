package main

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
)

// module is what a product adds to the program. The core runs without any: the build tag core leaves them out. What a
// module does not add is nil.
type module struct {
	// command is a command of its own.
	command func(*access.Settings) *cobra.Command
	// example is a later line of the examples in the help of the whole program.
	example string
	// quickStart is the first lines of them.
	quickStart string
	// operations are its operations of the API.
	operations server.Operations
	// watch is told the status of a crawl with an API, every second.
	watch server.Watching
	// amend adds to the options of a crawl.
	amend func(*crawling, *crawl.Options) error
	// prepare does what comes before a crawl opens its data directory.
	prepare func(context.Context, *crawling) error
	// run crawls in place of a crawl of this process alone, unless the settings do not ask for that: took is false.
	run func(command *cobra.Command, k *crawling, badSeeds int) (took bool, err error)
	// several returns what opens several crawls in place of one; nil: the settings do not ask for that.
	several func(*crawling) several
	// serve serves others while the crawl runs. running ends when ctx has ended and they are served; stop ends it.
	serve func(ctx context.Context, k *crawling) (running context.Context, stop func(), err error)
	// closed does what comes when a crawl is over and its data directory is closed; stopped: it is not done.
	closed func(ctx context.Context, stopped bool) error
	// collector has metrics; nil: the settings ask for none.
	collector func(*config.Config) prometheus.Collector
}

// crawlOptions returns the options of the settings, with what modules add.
func (k *crawling) crawlOptions() (crawl.Options, error) {
	o, err := k.config.CrawlOptions(programVersion())
	o.Older = k.older
	for _, m := range k.modules {
		if err == nil && m.amend != nil {
			err = m.amend(k, &o)
		}
	}
	return o, err
}

// prepared does what modules do before a crawl opens its data directory.
func (k *crawling) prepared(ctx context.Context) error {
	for _, m := range k.modules {
		if m.prepare == nil {
			continue
		}
		if err := m.prepare(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// served starts what serves others while the crawl runs: one after the other, so that the last one ends first.
func (k *crawling) served(ctx context.Context) (running context.Context, stop func(), err error) {
	running, stop = ctx, func() {}
	for _, m := range k.modules {
		if m.serve == nil {
			continue
		}
		inner, stopInner, err := m.serve(running, k)
		if err != nil {
			stop()
			return nil, nil, err
		}
		before := stop
		running, stop = inner, func() { stopInner(); before() }
	}
	return running, stop, nil
}

// closed does what modules do when the crawl is over and closed, until a signal arrives.
func (k *crawling) closed(ctx context.Context, stopped bool) (err error) {
	ctx, stop := console.Interruptible(ctx, k.messages, "amble: stopping; the output that is not given away yet is "+
		"left to the next run. A second signal stops at once")
	defer stop()
	for _, m := range k.modules {
		if m.closed != nil {
			err = errors.Join(err, m.closed(ctx, stopped))
		}
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		k.log.Warn("the crawl is done, and stopped before the output was given away", "error", err)
	default:
		return console.Exit(console.ExitProblem, err)
	}
	return nil
}

// unplugged refuses settings that ask for a module that this program has not.
func unplugged(c *config.Config, plugged []module) error {
	var runs, serves, amends bool
	for _, m := range plugged {
		runs, serves, amends = runs || m.run != nil, serves || m.serve != nil, amends || m.amend != nil
	}
	switch {
	case c.InCluster() && !runs:
		return console.Exit(console.ExitUsage,
			errors.New("the settings of cluster.* ask for a node of a cluster, and this program was "+
				"built without that (build tag core): leave them out, or use the whole program"))
	case c.URLFrontier.Listen != "" && !serves:
		return console.Exit(console.ExitUsage,
			errors.New("urlfrontier.listen asks for a service that this program was built without "+
				"(build tag core): leave it out, or use the whole program"))
	case (c.Identity.Listen != "" || c.Identity.Sign != "never") && !amends:
		return console.Exit(console.ExitUsage,
			errors.New("identity.listen and identity.sign ask for what this program was built without (build tag "+
				"core): leave them out, or use the whole program"))
	case c.Server.FetchToken != "" && !serves:
		return console.Exit(console.ExitUsage, errors.New("server.fetch_token is for fetchers, which this program was "+
			"built without (build tag core): leave it out, or use the whole program"))
	case (c.Output.OnComplete != "" || c.Output.WACZ) && !serves:
		return console.Exit(console.ExitUsage, errors.New("output.on_complete and output.wacz ask for what this "+
			"program was built without (build tag core): leave them out, or use the whole program"))
	}
	return nil
}
