//go:build !core

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	auditcommand "github.com/amble-crawler/amble/internal/modules/audit/command"
	"github.com/amble-crawler/amble/internal/modules/identity/command"
	crawlreport "github.com/amble-crawler/amble/internal/modules/report"
	reportcommand "github.com/amble-crawler/amble/internal/modules/report/command"
	"github.com/amble-crawler/amble/internal/modules/warc/completeness"
	"github.com/amble-crawler/amble/internal/service/server"
)

// reportModule says what a crawl came to, with the tables that other modules have.
func reportModule(signs command.Program) module {
	var parts crawlreport.Parts
	parts.Add("politeness", "Politeness", true, auditcommand.Running, auditcommand.Stored)
	parts.Add("requisites", "Requisites", false, completeness.Running, completeness.Stored)
	parts.Add("signed", "Signed requests", false,
		func(context.Context, *server.Server) (string, []string, [][]string, error) { return signs.Answers("") },
		func(_ context.Context, c *access.Crawl) (string, []string, [][]string, error) {
			return signs.Answers(c.DataDir)
		})
	api := &crawlreport.API{Now: time.Now, Parts: parts}
	return module{
		command: func(settings *access.Settings) *cobra.Command {
			return reportcommand.New(settings.Crawl, time.Now, parts)
		},
		example:    "amble report -o report.html                 what has come of it, and which links are broken?",
		operations: api.Register,
		amend: func(_ *crawling, o *crawl.Options) error {
			api.Use(crawlreport.NewSame(o.URLs, o.SessionNames))
			return nil
		},
	}
}
