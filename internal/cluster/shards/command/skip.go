//go:build !core

package command

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster/clusterconf"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/system"
)

// skip returns the command that sets aside a message at which the engine of a shard fails.
func (c *clustering) skip() *cobra.Command {
	return &cobra.Command{
		Use:   "skip SHARD SEQUENCE",
		Short: "Set aside a message that keeps a shard in quarantine",
		Long: "Take a message with URLs for a shard, which cannot be read, out of its stream, so that the shard " +
			`is crawled
again. Amble cluster status names the shard and the sequence of the message. Its bytes are first written to a file
in this directory, and nothing else is lost. A record of the log is not set aside, because the records behind it
need it: use an amble that can read it, or restore the NATS servers from a backup.

Exit code 0: done. 1: there is no such message, it can be read, or the servers do not answer. 2: wrong usage or
settings.`,
		Example: "  amble cluster skip 3 4711",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 2 {
				return console.Usagef("%q takes a shard and the sequence of a message; amble cluster status names both",
					command.CommandPath())
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			shard, err := strconv.ParseUint(args[0], 10, 16)
			if err != nil {
				return console.Usagef("%q is not the number of a shard", args[0])
			}
			sequence, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil {
				return console.Usagef("%q is not the sequence of a message", args[1])
			}
			return c.connect(command.Context(),
				func(ctx context.Context, js jetstream.JetStream, s *config.Config) error {
					return skipMessage(ctx, command, js, s, int(shard), sequence)
				})
		},
	}
}

func skipMessage(
	ctx context.Context, command *cobra.Command, js jetstream.JetStream, c *config.Config, shard int, sequence uint64,
) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	survey, err := membership.ReadSurvey(ctx, js, clusterconf.Names(c))
	if err != nil {
		return err
	}
	if shard >= len(survey.Shards) {
		return console.Usagef("the cluster has shards 0 to %d", len(survey.Shards)-1)
	}
	file := ""
	err = journal.SetAside(ctx, js, clusterconf.Names(c), shard, sequence, func(data []byte) error {
		file = fmt.Sprintf("%s-in-%d-%d.message", clusterconf.Names(c).Base(), shard, sequence)
		return system.ReplaceFile(file, data, 0o600, func() error { return nil }) // it may be there from a try before
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(command.OutOrStdout(), "message %d for shard %d is set aside, in %s\n", sequence, shard, file)
	if owner := survey.Shards[shard].Node; owner != "" && owner != membership.UnknownOwner {
		err = membership.Command(ctx, js.Conn(), clusterconf.Names(c), owner, membership.RetryFaults)
	}
	return err
}
