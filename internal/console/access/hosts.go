//go:build !core

package access

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
)

// Crawl returns the crawl of the settings, which may be running or not.
func (s *Settings) Crawl() (*Crawl, error) {
	c, err := s.Load()
	return s.CrawlOf(c), err
}

// CrawlOf returns the crawl of loaded settings.
func (s *Settings) CrawlOf(c *config.Config) *Crawl {
	return &Crawl{Config: c, Version: s.Version, Now: s.Now}
}

// Inspect calls f with what inspects the running crawl, or its database.
func (s *Settings) Inspect(ctx context.Context, f func(Inspector) error) error {
	c, err := s.Crawl()
	if err != nil {
		return err
	}
	return c.Inspect(ctx, f)
}

// Bounds of the cost of a completion.
const (
	maxOffers    = 100
	completeTime = 2 * time.Second
)

// OfferHosts completes the flag --host with names of hosts.
func (s *Settings) OfferHosts(command *cobra.Command) {
	console.Complete(command, "host", s.CompleteHost())
}

// CompleteHostArgument completes the first argument of a command with names of hosts.
func (s *Settings) CompleteHostArgument() cobra.CompletionFunc {
	complete := s.CompleteHost()
	return func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(command, args, begun)
	}
}

// CompleteHost offers the names of hosts that the running crawl, or the database, knows. After an
// error it offers nothing.
func (s *Settings) CompleteHost() cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, begun string) (names []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(contextOf(command)), completeTime)
		defer cancel()
		_ = s.Inspect(ctx, func(i Inspector) (err error) {
			names, err = i.HostNames(ctx, begun, maxOffers)
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// contextOf returns the context of a command. A command that is only completed may have none.
func contextOf(command *cobra.Command) context.Context {
	if ctx := command.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// CompleteLiveSetting is completeSetting for live settings.
func CompleteLiveSetting(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return offerSettings(begun, config.Live)
}
