//go:build !core

package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/fetchurl"
	fetchcommand "github.com/amble-crawler/amble/internal/modules/fetchurl/command"
)

// fetchModule fetches single URLs.
func fetchModule() module {
	return module{operations: fetchurl.Register,
		command: func(settings *access.Settings) *cobra.Command {
			return fetchcommand.New(fetchcommand.Program{
				Crawl: settings.Crawl, Open: openEngine(settings), Now: time.Now,
			})
		},
		example: "amble fetch https://example.com/a           what comes of this URL, now and politely?"}
}

// openEngine opens the crawl of some settings in this process.
func openEngine(settings *access.Settings) func(context.Context, *config.Config, io.Writer, func(*crawl.Options)) (
	*crawl.Engine, error) {
	return func(ctx context.Context, c *config.Config, messages io.Writer, change func(*crawl.Options)) (
		*crawl.Engine, error) {
		k := newCrawling(c, settings.Patched, messages)
		if err := reachable(c); err != nil {
			return nil, err
		}
		if err := unplugged(c, k.modules); err != nil {
			return nil, err
		}
		o, err := k.crawlOptions()
		if err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
		if err := k.prepared(ctx); err != nil {
			return nil, err
		}
		change(&o)
		e, err := crawl.Open(o, k.log)
		if err != nil {
			return nil, access.MakeError(ctx, c, err)
		}
		return e, nil
	}
}
