//go:build !core

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/shards"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/storage"
)

// exportDir returns the command that moves the crawl of a cluster to one machine.
func (c *clustering) exportDir() *cobra.Command {
	return &cobra.Command{
		Use:   "export DIR [URL...]",
		Short: "Move the crawl of a cluster to one machine",
		Long: `Join the databases of all shards to one in DIR, a new data_dir with which amble run goes on alone, with
all that the cluster knows: URLs in every state and those on their way between shards, politeness of hosts,
robots.txt files, recrawls, opt-outs, a pause. DIR must not exist, or be empty. The output stays on the nodes.

No node may own a shard: stop all nodes, or drain them with amble cluster drain. Nodes that are started
meanwhile wait for the end of the export. If it is interrupted, run it again: it begins again, and has left
nothing in DIR. It takes the settings of the nodes, so give it their config file, and the URLs of amble run;
and disk for twice the database. With cluster.embed.listen, run amble cluster serve on the machines first.

The cluster stays as it was. Do not start its nodes again when amble run uses DIR: both would crawl.

Exit code 0: the crawl is in DIR. 1: the servers do not answer, a deletion of URLs has not ended, DIR is not
empty, or the disk is full. 2: wrong usage or settings. 5: nodes own shards, or have other settings.`,
		Example: `  amble cluster export /var/lib/amble-alone -c cluster.yaml
  amble cluster export /srv/new --set cluster.urls=nats://10.1.2.3:4222 https://example.com/`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usagef("%q takes the directory to make: the data_dir of amble run",
					command.CommandPath())
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			ctx, stop := console.UntilInterrupted(command.Context())
			defer stop()
			return c.connect(ctx, func(ctx context.Context, js jetstream.JetStream, s *config.Config) error {
				return c.exportCrawl(ctx, command, js, s, args[0], args[1:])
			})
		},
	}
}

// exportCrawl moves the crawl of the cluster of the settings into a directory.
func (p *Program) exportCrawl(ctx context.Context, command *cobra.Command, js jetstream.JetStream,
	c *config.Config, dir string, urls []string) error {
	options, err := p.Node(command.ErrOrStderr(), c, urls)
	if err != nil {
		return err
	}
	reported := p.Now()
	done, err := shards.Export(ctx, js.Conn(), js, options, dir, func(x shards.Exported) {
		if now := p.Now(); now.Sub(reported) >= console.LogEvery {
			reported = now
			command.PrintErrf("%d of %d shards\n", x.Shards, x.Of)
		}
	})
	switch {
	case errors.Is(err, context.Canceled):
		return console.Exit(console.ExitProblem, errors.New("interrupted: nothing is exported"))
	case errors.Is(err, shards.ErrOwned), errors.Is(err, membership.ErrSettings):
		return console.Exit(console.ExitRefused, err)
	case err != nil:
		return err
	}
	if len(done.Settings) > 0 {
		command.PrintErrf(
			"amble: commands have changed settings of the nodes: put them into the config file of amble run: "+
				"%s\n", done.Settings)
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "%s with %s (%s fetched) and %s of %s of cluster %s are in %s\n"+
		"go on with amble run and data_dir: %s; do not start the nodes of the cluster again\n",
		console.Plural(done.Counters.Hosts, "host"), console.Plural(done.Counters.URLs, "URL"),
		console.Grouped(done.Counters.Of(storage.Fetched)), console.Plural(done.OptOuts, "opt-out"),
		console.Plural(done.Of, "shard"),
		c.Cluster.Name, dir, dir)
	return err
}
