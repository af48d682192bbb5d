//go:build !core

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster/shards"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/node"
	"github.com/amble-crawler/amble/internal/modules/erase"
	erasecommand "github.com/amble-crawler/amble/internal/modules/erase/command"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/modules/webhook"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// erasureModule removes all that is kept of a host.
func erasureModule() module {
	return module{prepare: endErasure, command: func(settings *access.Settings) *cobra.Command {
		return erasecommand.New(erasecommand.Program{
			Load: settings.Load, Options: eraseOptions, Complete: settings.CompleteHostArgument(),
		})
	}}
}

// outputFiles returns the files of an output directory, for an erasure.
func outputFiles(dir string, known []archive.Format, names weburl.Names) erase.Files {
	return webhook.Rewinding(dir, warcfiles.NewEraser(dir, known, names))
}

// eraseDirectory erases hosts from the directory of a shard. It is shards.Options.Erase.
func eraseDirectory(ctx context.Context, d shards.Directory) (n shards.Erased, err error) {
	o := erase.Options{
		Crawl: d.Crawl, Names: d.Names, Output: d.Output, Now: time.Now, Logged: true, NoDatabase: !d.Database,
		Files: outputFiles}
	o.Crawl.Spool.Dir = filepath.Join(d.Crawl.DataDir, "spool") // the one of the node is in use
	r, err := erase.Resume(ctx, o)
	if err == nil && d.Names.Name != "" {
		r, err = erase.Run(ctx, o)
	}
	if err != nil || r == nil {
		return n, err
	}
	return shards.Erased{
		Hosts: uint64(r.Database.Hosts), URLs: uint64(r.Database.URLs), Requests: r.LoggedRequests(),
		Records: r.Records(),
	}, nil
}

func eraseOptions(c *config.Config, step func(string)) (o erase.Options, err error) {
	options, err := c.CrawlOptions(programVersion())
	if err != nil {
		return o, console.Exit(console.ExitUsage, err)
	}
	others, err := node.Stored(options)
	if err != nil {
		return o, console.Exit(console.ExitProblem, fmt.Errorf("list the crawls: %w", err))
	}
	return erase.Options{Crawl: options, Others: others, Now: time.Now, Step: step, Files: outputFiles}, nil
}

// endErasure goes on with an erasure that was interrupted, before a crawl opens the data directory.
func endErasure(ctx context.Context, k *crawling) error {
	o, err := eraseOptions(k.config, func(text string) { k.log.Info(text) })
	if err != nil {
		return err
	}
	r, err := erase.Resume(ctx, o)
	if err != nil {
		return access.MakeError(ctx, k.config, fmt.Errorf("go on with an interrupted erasure: %w", err))
	}
	if r != nil {
		k.log.Info("an interrupted erasure has ended", "hosts", r.Database.Hosts, "urls", r.Database.URLs,
			"requests", r.LoggedRequests(), "output_records", r.Records())
	}
	return nil
}
