//go:build !core

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/clusterconf"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/arguments"
	"github.com/amble-crawler/amble/internal/service/server"
)

// requeueFlags are the flags of amble cluster requeue.
type requeueFlags struct {
	*clustering
	node, since string
	dryRun      bool
}

// requeue returns the command that puts back what a node has fetched.
func (c *clustering) requeue() *cobra.Command {
	f := &requeueFlags{clustering: c}
	command := &cobra.Command{
		Use:   "requeue",
		Short: "Fetch pages again that a node has fetched and lost",
		Long: `Put the pages that a node has fetched since a time back into their queues, because its output files
are lost. When a node owned a shard stands in the epochs of the shard, so the command works whether that node
runs or not. It needs a running node on this machine with an API (server.listen), and passes the pages of each
shard to its owner. What the command reports is in the logs of the shards, and is done once, whatever happens
to nodes. The pages are fetched as if for the first time, under the delays of their hosts.

Times of outcomes are those of the clock of the node that fetched them. Pages that another node fetched up to
10 s before or after may be put back too.

Exit code 0: done. 1: no node with that name has owned a shard since, no node on this machine answers, or some
shards did not: repeat the command. 2: wrong usage or settings.`,
		Example: `  amble cluster requeue --node machine2 --since 2026-11-01T00:00:00Z --dry-run
  amble cluster requeue --node machine2 --since 72h`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command) },
	}
	command.Flags().StringVar(&f.node, "node", "", "the `name` of the node")
	command.Flags().StringVar(&f.since, "since", "",
		"put back what it fetched since this `time`, or for so long: 2026-11-01T00:00:00Z, 2026-11-01, 72h")
	command.Flags().BoolVar(&f.dryRun, "dry-run", false, "count them and change nothing")
	return command
}

// clockSlack is by how much the clocks of nodes and NATS servers may differ.
const clockSlack = 10 * time.Second

func (f *requeueFlags) run(command *cobra.Command) error {
	if f.node == "" || f.since == "" {
		return console.Usagef("%q takes --node and --since: whose pages, and since when", command.CommandPath())
	}
	if err := natsconn.ValidateName(f.node); err != nil {
		return console.Usagef("--node: %w", err)
	}
	since, err := arguments.ParseSince(f.since, f.Now())
	if err != nil {
		return console.Usagef("%w", err)
	}
	ctx, stop := console.UntilInterrupted(command.Context())
	defer stop()
	return f.connect(ctx, func(ctx context.Context, js jetstream.JetStream, c *config.Config) error {
		limited, cancel := context.WithTimeout(ctx, clusterTimeout)
		defer cancel()
		owned, err := membership.ReadOwned(limited, js, clusterconf.Names(c), f.node, since)
		if err == nil && len(owned) == 0 {
			err = fmt.Errorf("no node %s of cluster %s has owned a shard since %s", f.node, c.Cluster.Name,
				since.UTC().Format(time.RFC3339))
		}
		if err != nil {
			return err
		}
		return f.putBack(ctx, command, c, owned)
	})
}

// putBack gives the owners of shards the command, through the node of this machine.
func (f *requeueFlags) putBack(ctx context.Context, command *cobra.Command, c *config.Config,
	owned map[cluster.Shard][]membership.Span) error {
	client, err := f.Crawl(c).Dial(ctx)
	if err != nil {
		return err
	}
	if client == nil {
		return errors.New(
			"no node on this machine answers: run the command where one runs, with its config file, and set " +
				"server.listen for it")
	}
	q := server.Retry{DryRun: f.dryRun}
	for shard, spans := range owned {
		n := int(shard)
		for _, s := range spans {
			q.Fetched = append(q.Fetched,
				server.FetchedIn{From: s.From.Add(-clockSlack), To: s.To.Add(clockSlack), Shard: &n})
		}
	}
	done, err := client.Retry(ctx, q, console.RetryProgress(command.ErrOrStderr(), f.Now))
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted; the shards that have the command go on with it. To be sure of all, repeat it")
	case err != nil:
		return err
	}
	verb := "put back"
	if f.dryRun {
		verb = "to be put back"
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "%s of node %s in %s %s\n", console.Plural(done.Back, "page"), f.node,
		console.Plural(len(owned), "shard"), verb)
	return err
}
