package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/journal"
	"github.com/amble-crawler/amble/internal/membership"
	"github.com/amble-crawler/amble/internal/natsconn"
)

const clusterLong = `Show and change a cluster of nodes that crawl together. The commands talk to the NATS servers of the
settings (cluster.urls), or to the server inside the node on this machine (cluster.embed.listen). They need no node
to run.

Exit code 0: done. 1: there is no such cluster or node, or the servers do not answer. 2: wrong usage or settings.`

func newClusterCommand(settings *settingsFlags) *cobra.Command {
	c := &clustering{settings: settings}
	return group("cluster", "Show and change a cluster of nodes", clusterLong, c.status(),
		c.command("drain", "Make a node hand over its shards", "Make a node hand over all of its shards and take no others. "+
			"It stays a\nmember, for amble cluster undrain. The command waits until the node has none. It holds as long "+
			"as\nthe process: a node that starts again takes shards again.", true),
		c.command("undrain", "Make a node take shards again", "Undo amble cluster drain. Shards that should belong to the node "+
			"are handed to\nit. A node whose disk has failed is drained too, and takes shards again after this.", false),
		c.importDir(), c.serve())
}

// clustering is a command about a cluster.
type clustering struct{ settings *settingsFlags }

// clusterTimeout bounds the time for the answers of the NATS servers.
const clusterTimeout = 15 * time.Second

// connect calls f with a connection to the servers of the settings.
func (c *clustering) connect(ctx context.Context,
	f func(ctx context.Context, js jetstream.JetStream, settings *config.Config) error) error {
	settings, err := c.settings.load()
	if err != nil {
		return err
	}
	o, err := settings.Client()
	if err != nil {
		return exit(exitUsage, err)
	}
	nc, js, err := natsconn.Connect(o)
	if err != nil {
		return exit(exitProblem, err)
	}
	defer nc.Close()
	err = f(ctx, js, settings)
	var known *exitError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return exit(exitProblem, err)
}

// survey is what the NATS servers know of a cluster.
type survey struct {
	cluster string
	*membership.Survey
	logs []journal.Report // by number of the shard
}

// readSurvey reads what the servers know of the cluster.
func readSurvey(ctx context.Context, js jetstream.JetStream, c *config.Config) (*survey, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	s, err := membership.ReadSurvey(ctx, js, c.ClusterNames())
	if err != nil {
		return nil, err
	}
	logs, err := journal.ReadReports(ctx, js, c.ClusterNames(), len(s.Shards))
	return &survey{c.Cluster.Name, s, logs}, err
}

func (c *clustering) status() *cobra.Command {
	var asJSON, all bool
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the nodes and shards of a cluster",
		Long: `Show the nodes of the cluster with their heartbeats and shards, the shards that move or have no
owner, and how much log a new owner has to replay. All of it is what the NATS servers know, so it is right also
when no node runs. A node with a heartbeat of less than the TTL (20s) less its margin is trusted, and makes
requests.

With --shards each shard is listed, with --json everything is one object.`,
		Example: `  amble cluster status
  amble cluster status --shards
  amble cluster status --set cluster.urls=nats://10.1.2.3:4222 --json`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.connect(command.Context(), func(ctx context.Context, js jetstream.JetStream, s *config.Config) error {
				v, err := readSurvey(ctx, js, s)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(command.OutOrStdout(), v.json())
				}
				return v.print(command.OutOrStdout(), all)
			})
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	command.Flags().BoolVar(&all, "shards", false, "list every shard")
	return command
}

// command returns a command that makes a node drain, or take shards again.
func (c *clustering) command(name, short, long string, drain bool) *cobra.Command {
	return &cobra.Command{
		Use: name + " NODE", Short: short, Long: long, Example: "  amble cluster " + name + " machine2",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("%q takes the name of one node; amble cluster status lists them", command.CommandPath())
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			ctx, stop := untilInterrupted(command.Context())
			defer stop()
			return c.connect(ctx, func(ctx context.Context, js jetstream.JetStream, s *config.Config) error {
				if err := natsconn.ValidateName(args[0]); err != nil {
					return exit(exitUsage, err)
				}
				limited, cancel := context.WithTimeout(ctx, clusterTimeout)
				defer cancel()
				if err := membership.Command(limited, js.Conn(), s.ClusterNames(), args[0], drain); err != nil {
					return err
				}
				if !drain {
					_, err := fmt.Fprintf(command.OutOrStdout(), "node %s takes shards again\n", args[0])
					return err
				}
				if err := untilDrained(ctx, js, s, args[0], func(left int) {
					command.PrintErrf("node %s has %s left\n", args[0], plural(left, "shard"))
				}); err != nil {
					return err
				}
				_, err := fmt.Fprintf(command.OutOrStdout(), "node %s has no shards\n", args[0])
				return err
			})
		},
	}
}

// untilDrained waits until a node owns no shard. report is called when the number has changed.
func untilDrained(ctx context.Context, js jetstream.JetStream, c *config.Config, node string, report func(left int)) error {
	reported := 0
	for {
		left := 0
		limited, cancel := context.WithTimeout(ctx, clusterTimeout)
		s, err := membership.ReadSurvey(limited, js, c.ClusterNames())
		cancel()
		if err != nil {
			return err
		}
		for _, shard := range s.Shards {
			if shard.Node == node {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		if left != reported {
			report(left)
			reported = left
		}
		select {
		case <-ctx.Done():
			return errors.New("the node goes on to hand over its shards; this command only waited for that")
		case <-time.After(time.Second):
		}
	}
}
