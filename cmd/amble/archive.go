//go:build !core

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/engine/node"
	"github.com/amble-crawler/amble/internal/modules/warc/command"
)

// archiveModule is the output as web archives, and what reads it.
func archiveModule() module {
	var running *crawling
	return module{page: archivedPage,
		command: func(settings *settingsFlags) *cobra.Command {
			return group("archive", "Read the stored output",
				`Read the output files of a crawl, in output.dir. None is changed, and a crawl may be running.`,
				archiveProgram(settings).Commands()...)
		},
		serve: func(ctx context.Context, k *crawling, _ *node.Node) (context.Context, func(), error) {
			running = k
			return ctx, func() {}, nil
		},
		closed: func(ctx context.Context, stopped bool) error {
			if running == nil || stopped || !running.config.Output.WACZ {
				return nil
			}
			return archiveProgram(nil).AtEnd(ctx, running.config, running.log)
		},
	}
}

func archiveProgram(settings *settingsFlags) command.Program {
	return command.Program{Load: settings.load, Version: programVersion(), Now: time.Now}
}
