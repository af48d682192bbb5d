//go:build !core

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/shards"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/storage"
)

// importDir returns the command that moves the crawl of one machine into a cluster.
func (c *clustering) importDir() *cobra.Command {
	return &cobra.Command{
		Use:   "import DIR [URL...]",
		Short: "Move the crawl of one machine into a cluster",
		Long: `Divide the database in DIR, the data_dir of a crawl that ran on one machine, among the shards of
the cluster. The nodes go on with all that it knows: URLs in every state, politeness of hosts, robots.txt files,
recrawls, opt-outs. DIR is only read, and stays as it was: keep it, since the output files are there. No process
may have it open.

The cluster must be one that no node has ever joined. Nodes that are started meanwhile wait for the end of the
import. If it is interrupted, run it again: it begins again, and until one is complete no node can join.

The settings and seeds must be those of the nodes, so give it their config file, and the URLs of amble run. With
cluster.embed.listen, run amble cluster serve on the machines first.

Exit code 0: all shards are in the cluster. 1: DIR has no database, or it cannot be used; the servers do not
answer; or the disk is full. 2: wrong usage or settings. 3: another process has DIR open. 5: the cluster has
nodes, or had some.`,
		Example: `  amble cluster import /var/lib/amble -c cluster.yaml
  amble cluster import /srv/old --set cluster.urls=nats://10.1.2.3:4222 https://example.com/`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usagef("%q takes the directory of a crawl: the data_dir of amble run",
					command.CommandPath())
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			ctx, stop := console.UntilInterrupted(command.Context())
			defer stop()
			return c.connect(ctx, func(ctx context.Context, js jetstream.JetStream, s *config.Config) error {
				return c.importCrawl(ctx, command, js, s, args[0], args[1:])
			})
		},
	}
}

// importCrawl moves the crawl in a directory into the cluster of the settings.
func (p *Program) importCrawl(ctx context.Context, command *cobra.Command, js jetstream.JetStream,
	c *config.Config, dir string, urls []string) error {
	if err := canMove(dir); err != nil {
		return err
	}
	options, err := p.Node(command.ErrOrStderr(), c, urls)
	if err != nil {
		return err
	}
	reported := p.Now()
	done, err := shards.Import(ctx, js.Conn(), js, options, dir, func(i shards.Imported) {
		if now := p.Now(); now.Sub(reported) >= console.LogEvery {
			reported = now
			command.PrintErrf("%d of %d shards, %s\n", i.Shards, i.Of, console.Plural(i.Counters.URLs, "URL"))
		}
	})
	if err != nil {
		return moveError(dir, err)
	}
	_, err = fmt.Fprintf(command.OutOrStdout(),
		"%s of %s with %s (%s fetched) are in %s of cluster %s, which take %s\n"+
			"start the nodes with amble run; %s is as it was\n", console.Plural(done.Counters.Hosts, "host"), dir,
		console.Plural(done.Counters.URLs, "URL"), console.Grouped(done.Counters.Of(storage.Fetched)),
		console.Plural(done.Of, "shard"),
		c.Cluster.Name, console.Size(uint64(done.Bytes)), dir)
	return err
}

// canMove returns nil, or why the crawl in a directory cannot be moved as it is.
func canMove(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, storage.FileName)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no database in %s: name the data_dir of a crawl", dir)
	}
	several, err := os.ReadDir(filepath.Join(dir, crawl.CrawlsDir))
	if err == nil && len(several) > 0 {
		return fmt.Errorf("%s has several crawls, and a cluster has one: delete the others with DeleteCrawl first", dir)
	}
	if _, err := os.Stat(filepath.Join(dir, crawl.ErasureFile)); err == nil {
		return fmt.Errorf("an erasure in %s was interrupted: amble run or amble erase there goes on with it", dir)
	}
	return nil
}

// moveError gives an error about the directory of a crawl its exit code.
func moveError(dir string, err error) error {
	switch {
	case errors.Is(err, storage.ErrInUse):
		return console.Exit(console.ExitInUse, fmt.Errorf("%w: stop the crawl in %s first", err, dir))
	case errors.Is(err, context.Canceled):
		return console.Exit(console.ExitProblem,
			errors.New("interrupted: no node can join until the import is repeated and complete"))
	case errors.Is(err, membership.ErrInService):
		return console.Exit(console.ExitRefused, err)
	}
	return err
}

// serve returns the command that runs the NATS server of this machine without a node.
func (c *clustering) serve() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the NATS server of this machine without a node",
		Long: `Run the server of cluster.embed.listen as amble run does, and no node, until a signal arrives. For
amble cluster import and export, which need servers and no node: run it on as many machines as have to run,
import on one of them, stop it, and start the nodes.

Exit code 0: stopped by a signal. 2: wrong settings, or there is no such server in them.`,
		Example: "  amble cluster serve -c cluster.yaml",
		Args:    console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			settings, err := c.Load()
			if err != nil {
				return err
			}
			if settings.Cluster.Embed.Listen == "" {
				return console.Exit(console.ExitUsage,
					errors.New("cluster.embed.listen is empty, so there is no server to run here"))
			}
			ctx, stop := console.UntilInterrupted(command.Context())
			defer stop()
			server, err := c.StartServer(command.ErrOrStderr(), settings)
			if err != nil {
				return err
			}
			defer server.Stop()
			<-ctx.Done()
			return nil
		},
	}
}
