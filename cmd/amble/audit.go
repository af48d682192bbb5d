//go:build !core

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/modules/audit/auditapi"
	auditcommand "github.com/amble-crawler/amble/internal/modules/audit/command"
	"github.com/amble-crawler/amble/internal/modules/identity"
)

// auditModule proves from the request log how polite a crawl was.
func auditModule() module {
	return module{operations: auditapi.Register,
		command: func(settings *access.Settings) *cobra.Command {
			return auditcommand.New(auditcommand.Program{
				Crawl: settings.Crawl, KeysDir: identity.KeysDir, Complete: settings.CompleteHost(), Now: time.Now,
			})
		},
		example: "amble audit                                 " +
			"did every request keep to robots.txt and the delays in force?",
		serve: func(ctx context.Context, k *crawling) (context.Context, func(), error) {
			return ctx, auditcommand.Keep(k.config.DataDir, k.signs, time.Now, k.log), nil
		}}
}
