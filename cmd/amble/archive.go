//go:build !core

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/warc/command"
	"github.com/amble-crawler/amble/internal/modules/warc/completeness"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
)

// archiveModule is the output as web archives, and what reads it.
func archiveModule() module {
	var running *crawling
	return module{
		operations: completeness.Register,
		command: func(settings *access.Settings) *cobra.Command {
			return console.Group("archive", "Read the stored output",
				`Read the output files of a crawl, in output.dir. None is changed, and a crawl may be running.`,
				archiveProgram(settings).Commands()...)
		},
		amend: func(k *crawling, o *crawl.Options) error {
			running = k
			if k.config.Output.WACZ && (k.config.InCluster() || !o.Archive.Has(warcfiles.Name)) {
				return console.Exit(console.ExitUsage, errors.New("output.wacz packs the WARC files of one machine: "+
					"add warc to output.format, or remove output.wacz; a node of a cluster has none"))
			}
			return nil
		},
		closed: func(ctx context.Context, stopped bool) error {
			if running == nil || stopped || !running.config.Output.WACZ {
				return nil
			}
			return archiveProgram(nil).AtEnd(ctx, running.config, running.log)
		},
	}
}

func archiveProgram(settings *access.Settings) command.Program {
	return command.Program{Load: settings.Load, CrawlOf: settings.CrawlOf, Version: programVersion(), Now: time.Now}
}
