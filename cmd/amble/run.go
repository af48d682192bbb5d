package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/console/outcome"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/system"
	"github.com/amble-crawler/amble/storage"
)

func newRunCommand(settings *access.Settings) *cobra.Command {
	asJSON, again := false, time.Duration(0)
	command := &cobra.Command{
		Use:   "run [URL...]",
		Short: "Crawl, or continue a crawl",
		Long: `Crawl from the seeds of the settings (crawl.seeds, crawl.seeds_file) and from the URLs given
here, or continue the crawl that is in data_dir. Known URLs are not fetched again; new seeds are added. It
ends when everything that can be fetched within crawl.give_up_after is done. Hosts that must be left alone for
longer are listed as postponed, and the next run continues with them.

With --again-after it fetches again what was fetched, redirected or given up longer ago than that, and ends when
all is done, whatever crawl.exit_when_done says: for cron. If nothing is due, it makes no request. In a cluster
give it to all nodes, whose settings have crawl.exit_when_done: true.

A bad seed is reported with its source, and the good ones are used. If seeds are given and all are bad, the
crawl does not start.

The first SIGINT or SIGTERM stops the crawl: requests in flight have crawl.shutdown_grace to end, then
everything is committed. Another one, at least a second later, stops at once; nothing that was committed is
lost. amble status shows the state of a running crawl.

SIGHUP makes it read the config file again, unless the messages go to a terminal. The settings that may change
while a crawl runs take effect. If one is wrong or may not change, none takes effect. The API can change them
too.

On a terminal a block of lines shows the progress; otherwise a line is logged every ten seconds. Messages go
to standard error, the summary at the end to standard output.

Exit code 0: everything is done or postponed, a limit (crawl.max_pages, crawl.max_bytes, crawl.max_time) is
reached, or the crawl was stopped; the summary says which, and with --json "end" does. 1: an error stopped it, or the
database cannot be used. 2: wrong settings or usage, no usable seed, or nothing to crawl. 3: another process
has the database. 4: no seed could be fetched, the summary says why. 5: the cluster refuses this node. 130:
stopped at once by a second signal.

With cluster.urls or cluster.embed.listen the process is a node of a cluster: it crawls the shards that fall
to it. It waits for the NATS servers if they are down. The first signal makes it hand its shards over and
leave. When the crawl is over on all nodes, each of them ends with exit code 0 and lists the postponed hosts of
its shards. No node knows what became of all seeds, so exit code 4 is that of one machine alone, and a crawl
without seeds is not refused: their summaries say what was fetched.`,
		Example: `  amble run https://example.com/
  amble run -c site.yaml
  amble run --set data_dir=/srv/crawl --set crawl.max_pages=500 https://example.com/docs/
  amble run --set crawl.seeds_file=seeds.txt --set scope.mode=domain
  amble run --again-after 24h --set crawl.max_time=50m`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"https://"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(command *cobra.Command, urls []string) error {
			c, err := settings.Load()
			var end *outcome.Result
			if asJSON {
				end = new(outcome.Result)
			}
			if err == nil {
				k := newCrawling(c, settings.Patched, command.ErrOrStderr())
				if command.Flags().Changed("again-after") {
					err = k.fetchAgain(again, time.Now())
				}
				if err == nil {
					err = runCrawl(command, k, urls, end)
				}
			}
			return end.Print(command.OutOrStdout(), err, exitCode(err))
		},
	}
	command.Flags().DurationVar(&again, "again-after", 0, "fetch what is older than this, such as 24h, again and end")
	command.Flags().BoolVar(&asJSON, "json", false, "print the summary as a JSON object")
	return command
}

// runCrawl crawls, and prints a summary unless end takes it.
func runCrawl(command *cobra.Command, k *crawling, urls []string, end *outcome.Result) error {
	c := k.config
	k.end = end
	for _, w := range c.Warnings() {
		k.notice("warning", w)
	}
	seeds, err := readSeeds(c, urls, func(text string) { k.notice("bad seed", text) })
	if err != nil {
		return err
	}
	k.seeds, k.badSeeds = seeds.good, seeds.bad
	if err := reachable(c); err != nil {
		return err
	}
	if err := unplugged(c, k.modules); err != nil {
		return err
	}
	for _, m := range k.modules {
		if m.run == nil {
			continue
		}
		if took, err := m.run(command, k, seeds.bad); took {
			return err
		}
	}
	if err := somethingToCrawl(c, len(seeds.good)); err != nil {
		return err // before any directory is made
	}
	if text := nothingInScope(c, len(seeds.good)); text != "" {
		k.notice("warning", text)
	}
	out, err := k.run(command.Context())
	if err != nil {
		return err
	}
	closed := k.closed(command.Context(), out.Stopped())
	if end != nil {
		end.Take(&out)
	} else if err := outcome.Print(command.OutOrStdout(), c, &out, seeds.bad, time.Now()); err != nil {
		return err
	}
	if closed != nil {
		return closed
	}
	if out.Seeds.Failed && !out.Stopped() {
		return console.Exit(console.ExitNoSeed, nil)
	}
	return nil
}

// reachable refuses to request anything of public hosts unless their operators can reach somebody.
func reachable(c *config.Config) error {
	requests := c.Crawl.Workers > 0 || c.URLFrontier.Robots
	if why := config.NoContact(c); why != "" && requests && !c.Fetch.AllowPrivate {
		return console.Exit(console.ExitUsage, fmt.Errorf("%s: %s. Operators who see this crawler have to be able to "+
			"reach you, so it does not request anything of public hosts without that", c.Source("fetch.contact"), why))
	}
	return nil
}

func hasDatabase(c *config.Config) bool {
	_, err := os.Stat(filepath.Join(c.DataDir, storage.FileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// somethingToCrawl refuses a crawl that has nothing to do and never will.
func somethingToCrawl(c *config.Config, seeds int) error {
	switch {
	case seeds > 0 || hasDatabase(c):
		return nil
	case c.Crawl.ExitWhenDone && c.URLFrontier.Listen == "":
		return console.Exit(console.ExitUsage, crawl.ErrNothing)
	case c.Server.Listen == "" && c.URLFrontier.Listen == "":
		return console.Exit(console.ExitUsage,
			errors.New("there is nothing to crawl, and no API to add URLs: name seeds, or set server.listen"))
	}
	return nil
}

// nothingInScope warns if the scope refuses all URLs that are added to a crawl without seeds.
func nothingInScope(c *config.Config, seeds int) string {
	if seeds > 0 || hasDatabase(c) || c.Scope.Mode == "any" {
		return ""
	}
	return fmt.Sprintf("%s: scope.mode is %s and there are no seeds, so every URL that is added to this crawl is "+
		"outside its scope; set scope.mode: any, or crawl.seeds",
		c.Source("scope.mode"), c.Scope.Mode)
}

// seedList holds the seeds of a run.
type seedList struct {
	good []crawl.Seed
	bad  int
}

// readSeeds collects the seeds of the settings and of the arguments, and reports each bad one with
// its source and the problem. It returns a usage error if seeds were given and all are bad.
func readSeeds(c *config.Config, arguments []string, complain func(string)) (seedList, error) {
	var list seedList
	config.VisitSeeds(c, arguments,
		func(s crawl.Seed) {
			list.good = append(list.good, s)
		},
		func(b config.BadSeed) {
			list.bad++
			complain(b.String())
		})
	if list.bad > 0 && len(list.good) == 0 {
		return list, console.Exit(console.ExitUsage, fmt.Errorf("no seed can be used: %s", badSeeds(list.bad)))
	}
	return list, nil
}

func badSeeds(n int) string {
	if n == 1 {
		return "the only one given is bad, see above"
	}
	return "all " + console.Grouped(n) + " are bad, see above"
}

// crawling is one crawl of this process, from the opening of its data directory to the last commit.
type crawling struct {
	config   *config.Config
	seeds    []crawl.Seed
	badSeeds int
	again    time.Duration   // what is older is fetched again; 0: nothing
	older    time.Time       // what was fetched before it is fetched again; zero: nothing
	end      *outcome.Result // nil: a summary is printed
	screen   *console.Screen // nil: no terminal
	messages io.Writer
	log      *slog.Logger
	settings *liveSettings
	modules  []module
	signs    func(now time.Time, content []byte) (key string, signature []byte, err error) // nil: nothing does
}

// newCrawling prepares a crawl whose messages go to messages, above the progress block if that is a
// terminal. load reloads its settings, with a patch or without.
func newCrawling(c *config.Config, load func(patch []byte) (*config.Config, error), messages io.Writer) *crawling {
	k := &crawling{config: c, screen: console.NewScreen(messages), messages: messages, modules: modules()}
	if k.screen != nil {
		k.messages = k.screen
	}
	log, level := console.NewLogger(k.messages, c.Log)
	k.log, k.settings = log, &liveSettings{load: load, level: level, log: log, current: c}
	return k
}

// notice prints one line of its own, or logs it if the log must stay machine-readable.
func (k *crawling) notice(kind, text string) {
	if k.config.Log.Format == "json" {
		k.log.Warn(text)
		return
	}
	fmt.Fprintf(k.messages, "%s: %s\n", kind, text)
}

// run crawls until everything is done or a signal arrives. Its errors have an exit code.
func (k *crawling) run(ctx context.Context) (out outcome.Outcome, err error) {
	options, err := k.crawlOptions()
	if err != nil {
		return out, console.Exit(console.ExitUsage, err)
	}
	options.KeepSeeds = k.badSeeds > 0
	several := k.several()
	if limit, known := system.Descriptors(); known {
		if err := checkDescriptors(limit, &options, several,
			func(text string) { k.notice("warning", text) }); err != nil {
			return out, err
		}
	}
	defer console.RedirectStandardLog(k.log, time.Now)()
	ctx, stop := console.Interruptible(ctx, k.messages, "amble: stopping; requests in flight have "+
		console.Span(k.config.Crawl.ShutdownGrace)+" to end. A second signal stops at once")
	defer stop()
	if err := k.prepared(ctx); err != nil {
		return out, err
	}
	c, err := k.open(&options, several)
	if err != nil {
		return out, access.MakeError(ctx, k.config, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	k.settings.apply, k.settings.changeSeeds = c.Change, c.Default().ChangeSeeds
	if k.screen == nil {
		// On a terminal the signal means that the terminal is gone.
		defer k.settings.reloadOnHangup(ctx, k.settings.Reload)()
	}
	api, err := k.startServer(c.Default())
	if err != nil {
		return out, err
	}
	running, unserve, err := k.served(ctx)
	if err != nil {
		return out, errors.Join(err, closeServer(api))
	}
	started := time.Now()
	status := c.Default().Status
	out.Before, out.Again = status(), k.again
	unwatch := console.Watch(outcome.Progress(status, time.Now, k.log), k.screen)
	stopping := console.FindSupervisor(os.Getenv, time.Now).Watch(console.VitalOf(status))
	out.Summary, err = c.Run(running)
	unserve()
	stopping()
	unwatch()
	out.Took = time.Since(started)
	return out, errors.Join(k.ended(ctx, &out, err), closeServer(api))
}

// ended gives the error of Engine.Run an exit code.
func (k *crawling) ended(ctx context.Context, out *outcome.Outcome, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		out.End = crawl.EndStopped // before the first request
		out.Status = out.Before
		return nil
	case errors.Is(err, crawl.ErrNothing) && len(k.seeds) > 0:
		return console.Exit(console.ExitUsage, outcome.NothingInside(len(k.seeds)))
	case errors.Is(err, crawl.ErrNothing):
		return console.Exit(console.ExitUsage, err)
	}
	if isDamage(err) {
		return console.Exit(console.ExitDamaged,
			fmt.Errorf("the crawl had to stop: %w: %s", err, access.DamageAdvice(k.config)))
	}
	return console.Exit(console.ExitProblem,
		fmt.Errorf("the crawl had to stop: %w. What was committed is safe; the same command continues the crawl", err))
}

// closeGrace is how long responses of the API that are being written may take at the end.
const closeGrace = 2 * time.Second

// serverOptions returns the options of the API, from the settings.
func (k *crawling) serverOptions() server.Options {
	s := k.config.Server
	metrics := server.NewMetrics(programVersion())
	var operations []server.Operations
	var watches []server.Watching
	for _, m := range k.modules {
		if m.operations != nil {
			operations = append(operations, m.operations)
		}
		if m.watch != nil {
			watches = append(watches, m.watch)
		}
		if m.collector == nil {
			continue
		}
		if c := m.collector(k.config); c != nil {
			metrics.Register(c)
		}
	}
	return server.Options{
		Listen: s.Listen, Token: s.Token, ReadToken: s.ReadToken, FetchToken: s.FetchToken,
		Hosts: s.Hosts, TLSCert: s.TLSCert, TLSKey: s.TLSKey,
		BehindProxy: s.BehindTLSProxy, Pprof: s.Pprof, Metrics: metrics, Settings: k.settings,
		Operations: operations, Watches: watches,
		DataDir: k.config.DataDir, Version: programVersion(), Now: time.Now,
	}
}

// startServer starts the API.
func (k *crawling) startServer(e *crawl.Engine) (*server.Server, error) {
	o := k.serverOptions()
	if o.Listen == "" {
		return nil, nil
	}
	return k.serve(o, e)
}

// serve starts the API; c is nil on a node of a cluster.
func (k *crawling) serve(o server.Options, c server.Crawl) (*server.Server, error) {
	api, err := server.Start(o, c)
	if err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf(
			"%s: server.listen: %w; amble status needs this API. Set another port, any free one with --set "+
				"server.listen=127.0.0.1:0, or disable the API with --set server.listen=",
			k.config.Source("server.listen"), err))
	}
	k.settings.useTokens(api.SetTokens)
	if o.Listen != "" {
		k.log.Info("the API listens", "address", api.Address())
	}
	return api, nil
}
