//go:build !core

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster/clusterconf"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/shards"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/arguments"
	"github.com/amble-crawler/amble/internal/rules/optout"
)

// clusterErasing is a command to erase hosts from a cluster.
type clusterErasing struct {
	scope                  string
	output, noWait, asJSON bool
}

// erase returns the command that erases hosts from all nodes.
func (c *clustering) erase() *cobra.Command {
	f := &clusterErasing{}
	command := &cobra.Command{
		Use:   "erase HOST|DOMAIN",
		Short: "Remove all that is kept of a host or a domain from all nodes",
		Long: "Remove all that is kept of a host and of all names below it, or with --scope host of the host " +
			`alone: from the
databases, request logs, start ledgers and crash files of all nodes, with --output also from their output files, and
from the logs, snapshots and URLs on their way that the NATS servers hold. See amble erase.

The owner of each shard does it between two runs of its engine. Shards without an owner, and nodes that are away, do
it when they come back. This command waits for all shards and for the nodes that run, unless --no-wait is given; after
an interruption the cluster goes on. Amble cluster status shows what is left.

A host that is erased is fetched again if a page links to it: amble optout add prevents that.

Exit code 0: done, or begun with --no-wait. 1: the servers do not answer, or this command was interrupted. 2: wrong
usage or settings.`,
		Example: `  amble cluster erase example.org --output
  amble cluster erase www.example.org --scope host --no-wait`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usagef("%q takes one host or domain", command.CommandPath())
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			names, err := arguments.Names(f.scope, args[0])
			if err != nil {
				return err
			}
			ctx, stop := console.UntilInterrupted(command.Context())
			defer stop()
			x := shards.Erasure{Name: names.Name, Below: names.Below, Output: f.output, At: c.Now().UTC()}
			return c.connect(ctx, func(ctx context.Context, js jetstream.JetStream, s *config.Config) error {
				return f.erase(ctx, command, js, s, x)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.scope, "scope", "",
		"host or domain: the name alone, or all names below it too (default domain; host for an address)")
	flags.BoolVar(&f.output, "output", false, "erase from the output files too")
	flags.BoolVar(&f.noWait, "no-wait", false, "only begin")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	console.Offer(command, "scope", []string{string(optout.ScopeHost), string(optout.ScopeDomain)})
	return command
}

// eraseAgain is the time between two looks at how far an erasure is.
const eraseAgain = 500 * time.Millisecond

func (f *clusterErasing) erase(
	ctx context.Context, command *cobra.Command, js jetstream.JetStream, c *config.Config, x shards.Erasure,
) error {
	limited, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	s, err := membership.ReadSurvey(limited, js, clusterconf.Names(c))
	if err != nil {
		return err
	}
	x.Number, err = shards.AddErasure(limited, js.Conn(), js, clusterconf.Names(c), len(s.Shards), x, clusterTimeout)
	if err != nil {
		return err
	}
	out := command.OutOrStdout()
	if f.noWait {
		_, err := fmt.Fprintf(out, "%s is erased as the shards and nodes get to it: amble cluster status\n", x.Name)
		return err
	}
	done, err := untilErased(ctx, js, c, x.Number, func(text string) { command.PrintErrln(text) })
	if err != nil {
		return err
	}
	if f.asJSON {
		return console.WriteJSON(out, done)
	}
	return printErased(out, done)
}

// untilErased waits until no shard is left, and all nodes that run are done. report is called with what is left.
func untilErased(ctx context.Context, js jetstream.JetStream, c *config.Config, number uint64,
	report func(string)) (*shards.Erasure, error) {
	for reported := ""; ; {
		limited, cancel := context.WithTimeout(ctx, clusterTimeout)
		all, err := shards.ReadErasures(limited, js.Conn(), js, clusterconf.Names(c), clusterTimeout)
		var s *membership.Survey
		if err == nil {
			s, err = membership.ReadSurvey(limited, js, clusterconf.Names(c))
		}
		cancel()
		if ctx.Err() != nil {
			return nil,
				errors.New("interrupted: the cluster goes on with the erasure, amble cluster status shows how far " +
					"it is")
		}
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(x shards.Erasure) bool { return x.Number == number })
		if i < 0 {
			return nil, errors.New("the cluster knows nothing of this erasure any more: was its register replaced?")
		}
		left := shards.Unfinished(all[i:i+1], s)
		if len(left) == 0 {
			return &all[i], nil
		}
		if text := erasureText(&left[0]); text != reported {
			report(text)
			reported = text
		}
		select {
		case <-ctx.Done():
		case <-time.After(eraseAgain):
		}
	}
}

// erasureText says what an erasure waits for.
func erasureText(e *membership.Erasing) string {
	var left []string
	if e.Shards > 0 {
		left = append(left, console.Plural(e.Shards, "shard"))
	}
	for _, node := range e.Nodes {
		left = append(left, "node "+node)
	}
	return "the erasure of " + e.Name + " waits for " + strings.Join(left, ", ")
}

func printErased(w io.Writer, x *shards.Erasure) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is erased from all shards\n\n", x.Name)
	rows := [][]string{{"node", "hosts", "URLs", "requests", "records of the output"}}
	for _, node := range slices.Sorted(maps.Keys(x.Nodes)) {
		n := x.Nodes[node]
		rows = append(rows, []string{
			node, console.Grouped(n.Hosts), console.Grouped(n.URLs), console.Grouped(n.Requests),
			console.Grouped(n.Records),
		})
	}
	console.WriteTable(&b, rows)
	_, err := io.WriteString(w, b.String())
	return err
}
