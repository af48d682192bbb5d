//go:build !core

package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/audit/receipts"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/identity/command"
	"github.com/amble-crawler/amble/internal/node"
	"github.com/amble-crawler/amble/internal/requestlog"
)

// identityModule proves to sites who the crawler is.
func identityModule() module {
	p := command.Program{Version: programVersion(), Now: time.Now, Receipts: func(c *config.Config) ([]byte, error) {
		return receipts.Tail(filepath.Join(c.DataDir, requestlog.DirName))
	}}
	return module{
		command: func(settings *settingsFlags) *cobra.Command {
			return group("identity", "Show and prove to sites who this crawler is",
				`The bot page, the list of addresses, the keys that requests are signed with, and what the operators
of sites configure to let this crawler in. docs/IDENTITY.md says how to begin.`, p.Commands(settings.load)...)
		},
		amend: func(k *crawling, o *crawl.Options) (err error) {
			k.signs, err = p.Amend(k.config, o)
			return err
		},
		serve: func(ctx context.Context, k *crawling, _ *node.Node) (context.Context, func(), error) {
			stop, err := p.Serve(ctx, k.config, k.log)
			return ctx, stop, err
		},
	}
}
