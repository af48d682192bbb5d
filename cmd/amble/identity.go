//go:build !core

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/audit/receipts"
	"github.com/amble-crawler/amble/internal/modules/identity/command"
)

// identityProgram is what the commands of amble identity and the signing of requests share.
func identityProgram() command.Program {
	return command.NewProgram(programVersion(), time.Now, receipts.Tail)
}

// identityModule proves to sites who the crawler is.
func identityModule(p command.Program) module {
	return module{
		command: func(settings *access.Settings) *cobra.Command {
			return console.Group("identity", "Show and prove to sites who this crawler is",
				`The bot page, the list of addresses, the keys that requests are signed with, and what the operators
of sites configure to let this crawler in. docs/IDENTITY.md says how to begin.`, p.Commands(settings.Load)...)
		},
		amend: func(k *crawling, o *crawl.Options) (err error) {
			k.signs, err = p.Amend(k.config, o)
			return err
		},
		collector:  p.Collector,
		operations: p.Register,
		serve: func(ctx context.Context, k *crawling) (context.Context, func(), error) {
			stop, err := p.Serve(ctx, k.config, k.log)
			return ctx, stop, err
		},
	}
}
