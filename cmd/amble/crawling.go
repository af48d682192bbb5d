package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/server"
)

// crawling is one crawl of this process, from the opening of its data directory to the last commit.
type crawling struct {
	config   *config.Config
	seeds    []crawl.Seed
	screen   *screen // nil: there is none
	messages io.Writer
	log      *slog.Logger
	settings *liveSettings
}

// newCrawling prepares a crawl whose messages go to a stream, above the progress block if that is a terminal. load reads its settings again, with
// a patch or without.
func newCrawling(c *config.Config, load func(patch []byte) (*config.Config, error), messages io.Writer) *crawling {
	k := &crawling{config: c, screen: newScreen(messages), messages: messages}
	if k.screen != nil {
		k.messages = k.screen
	}
	log, level := newLogger(k.messages, c.Log)
	k.log, k.settings = log, &liveSettings{load: load, level: level, log: log, current: c}
	return k
}

// notice prints one line of its own, or logs it where the log has to stay readable by machines.
func (k *crawling) notice(kind, text string) {
	if k.config.Log.Format == "json" {
		k.log.Warn(text)
		return
	}
	fmt.Fprintf(k.messages, "%s: %s\n", kind, text)
}

// outcome is what a run came to, and how things stood before it.
type outcome struct {
	crawl.Summary
	before crawl.Status
	took   time.Duration
}

// run crawls until all is done or a signal comes. Its errors know their exit code.
func (k *crawling) run(ctx context.Context) (out outcome, err error) {
	options, err := k.config.CrawlOptions(programVersion())
	if err != nil {
		return out, exit(exitUsage, err)
	}
	if limit, known := descriptorLimit(); known {
		if err := checkDescriptors(limit, &options, func(text string) { k.notice("warning", text) }); err != nil {
			return out, err
		}
	}
	defer redirectStandardLog(k.log)()
	ctx, stop := interruptible(ctx, k.messages, k.config.Crawl.ShutdownGrace)
	defer stop()
	engine, err := crawl.Open(options, k.log)
	if err != nil {
		return out, makeError(ctx, k.config, err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	k.settings.apply = engine.Change
	if k.screen == nil {
		defer k.settings.reloadOnHangup(ctx)() // on a terminal the signal means that it is gone
	}
	api, err := k.startServer(engine)
	if err != nil {
		return out, err
	}
	started := time.Now()
	out.before = engine.Status()
	unwatch := watch(engine.Status, k.screen, k.log)
	stopping := findSupervisor(os.Getenv).watch(engine.Status)
	out.Summary, err = engine.Run(ctx, k.seeds)
	stopping()
	unwatch()
	out.took = time.Since(started)
	return out, errors.Join(k.ended(ctx, &out, err), closeServer(api))
}

// ended makes the error of Engine.Run one that knows its exit code.
func (k *crawling) ended(ctx context.Context, out *outcome, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		out.Stopped = true // before the first request
		out.Status = out.before
		return nil
	case errors.Is(err, crawl.ErrNothing) && len(k.seeds) > 0:
		return exit(exitUsage, fmt.Errorf("there is nothing to crawl: %s outside of scope.include or inside of scope.exclude, see the warnings above", allSeeds(len(k.seeds))))
	case errors.Is(err, crawl.ErrNothing):
		return exit(exitUsage, err)
	}
	return exit(exitProblem, fmt.Errorf("the crawl had to stop: %w. What was committed is safe; the same command goes on", err))
}

func allSeeds(n int) string {
	if n == 1 {
		return "the only seed is"
	}
	return "all " + grouped(n) + " seeds are"
}

// closeGrace is how long answers of the API that are being written may take at the end.
const closeGrace = 2 * time.Second

func (k *crawling) startServer(c server.Crawl) (*server.Server, error) {
	s := k.config.Server
	if s.Listen == "" {
		return nil, nil
	}
	api, err := server.Start(server.Options{
		Listen: s.Listen, Token: s.Token, ReadToken: s.ReadToken, Hosts: s.Hosts, TLSCert: s.TLSCert, TLSKey: s.TLSKey,
		BehindProxy: s.BehindTLSProxy, Pprof: s.Pprof, Metrics: server.NewMetrics(programVersion()), Settings: k.settings,
		DataDir: k.config.DataDir, Version: programVersion(), Now: time.Now,
	}, c)
	if err != nil {
		return nil, exit(exitUsage, fmt.Errorf(
			"%s: server.listen: %w; amble status needs this API. Take another port, or any free one with --set server.listen=127.0.0.1:0, or go without by --set server.listen=",
			k.config.Source("server.listen"), err))
	}
	k.settings.useTokens(api.SetTokens)
	k.log.Info("the API listens", "address", api.Address())
	return api, nil
}

func closeServer(api *server.Server) error {
	if api == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	return api.Close(ctx)
}
