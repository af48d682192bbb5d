//go:build !core

// Package command has the commands of amble cluster, and what amble run says as a node of one.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster/clusterapi"
	"github.com/amble-crawler/amble/internal/cluster/clusterconf"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/membership"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/cluster/shards"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
)

// Program is the program that the commands are part of.
type Program struct {
	Now   func() time.Time
	Load  func() (*config.Config, error)
	Crawl func(*config.Config) *access.Crawl
	// Node returns the options that a node of the settings has, with these URLs as seeds too.
	Node func(messages io.Writer, c *config.Config, urls []string) (shards.Options, error)
	// StartServer starts the NATS server of the settings, which have one.
	StartServer func(messages io.Writer, c *config.Config) (*natsconn.Server, error)
}

// Long is the description of amble cluster.
const Long = `Show and change a cluster of nodes that crawl together. The commands talk to the NATS servers of the
settings (cluster.urls), or to the server inside the node on this machine (cluster.embed.listen). They need no node
to run.

Exit code 0: done. 1: there is no such cluster or node, or the servers do not answer. 2: wrong usage or settings.`

// New returns the commands below amble cluster.
func New(p *Program) []*cobra.Command {
	c := &clustering{p}
	return []*cobra.Command{
		c.status(),
		c.command("drain", "Make a node hand over its shards",
			"Make a node hand over all of its shards and take no others. "+
				"It stays a\nmember, for amble cluster undrain. The command waits until the node has none. It holds "+
				"as long as\nthe process: a node that starts again takes shards again.", true),
		c.command("undrain", "Make a node take shards again",
			"Undo amble cluster drain. Shards that should belong to the node "+
				"are handed to\nit. A node whose disk has failed is drained too, and takes shards again after this.",
			false),
		c.importDir(), c.exportDir(), c.requeue(), c.skip(), c.erase(), c.serve(),
	}
}

// clustering is a command about a cluster.
type clustering struct{ *Program }

// clusterTimeout bounds the time for the answers of the NATS servers.
const clusterTimeout = 15 * time.Second

// connect calls f with a connection to the servers of the settings.
func (c *clustering) connect(ctx context.Context,
	f func(ctx context.Context, js jetstream.JetStream, settings *config.Config) error) error {
	settings, err := c.Load()
	if err != nil {
		return err
	}
	o, err := clusterconf.Client(settings)
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	o.Events = func(_ string, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) { // a request without permission gets no answer
			refuse(
				fmt.Errorf(
					"%w: the user of this connection has no permission for cluster %s; look at cluster.name, and "+
						"at cluster.credentials", err, settings.Cluster.Name))
		}
	}
	nc, js, err := natsconn.Connect(o)
	if err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	defer nc.Close()
	err = f(ctx, js, settings)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, nats.ErrPermissionViolation) {
		err = cause
	}
	var known *console.ExitError
	var usage *console.UsageError
	if err == nil || errors.As(err, &known) || errors.As(err, &usage) {
		return err
	}
	return console.Exit(console.ExitProblem, err)
}

// survey is what the NATS servers know of a cluster.
type survey struct {
	cluster string
	*membership.Survey
	logs     []journal.Report // by number of the shard
	erasures []shards.Erasure
}

// readSurvey reads what the servers know of the cluster.
func readSurvey(ctx context.Context, js jetstream.JetStream, c *config.Config) (*survey, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	s, err := membership.ReadSurvey(ctx, js, clusterconf.Names(c))
	if err != nil {
		return nil, err
	}
	logs, err := journal.ReadReports(ctx, js, clusterconf.Names(c), len(s.Shards))
	if err != nil {
		return nil, err
	}
	erasures, err := shards.ReadErasures(ctx, js.Conn(), js, clusterconf.Names(c), clusterTimeout)
	return &survey{c.Cluster.Name, s, logs, erasures}, err
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
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.connect(command.Context(),
				func(ctx context.Context, js jetstream.JetStream, s *config.Config) error {
					v, err := readSurvey(ctx, js, s)
					if err != nil {
						return err
					}
					if asJSON {
						return console.WriteJSON(command.OutOrStdout(), v.json())
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
				return console.Usagef("%q takes the name of one node; amble cluster status lists them",
					command.CommandPath())
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			ctx, stop := console.UntilInterrupted(command.Context())
			defer stop()
			return c.connect(ctx, func(ctx context.Context, js jetstream.JetStream, s *config.Config) error {
				if err := natsconn.ValidateName(args[0]); err != nil {
					return console.Exit(console.ExitUsage, err)
				}
				limited, cancel := context.WithTimeout(ctx, clusterTimeout)
				defer cancel()
				order := membership.Undrain
				if drain {
					order = membership.Drain
				}
				if err := membership.Command(limited, js.Conn(), clusterconf.Names(s), args[0], order); err != nil {
					return err
				}
				if !drain {
					_, err := fmt.Fprintf(command.OutOrStdout(), "node %s takes shards again\n", args[0])
					return err
				}
				if err := untilDrained(ctx, js, s, args[0], func(left int) {
					command.PrintErrf("node %s has %s left\n", args[0], console.Plural(left, "shard"))
				}); err != nil {
					return err
				}
				_, err := fmt.Fprintf(command.OutOrStdout(), "node %s has no shards\n", args[0])
				return err
			})
		},
	}
}

// errGoesOn is the error of a command to drain that a signal has ended.
var errGoesOn = errors.New("the node goes on to hand over its shards; this command only waited for that")

// untilDrained waits until a node owns no shard. report is called when the number has changed.
func untilDrained(ctx context.Context, js jetstream.JetStream, c *config.Config, node string,
	report func(left int)) error {
	reported := 0
	for {
		left := 0
		limited, cancel := context.WithTimeout(ctx, clusterTimeout)
		s, err := membership.ReadSurvey(limited, js, clusterconf.Names(c))
		cancel()
		if ctx.Err() != nil {
			return errGoesOn
		}
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
			return errGoesOn
		case <-time.After(time.Second):
		}
	}
}

// json returns the survey as the API has it.
func (v *survey) json() clusterapi.ClusterView {
	view := clusterapi.NewClusterView(v.cluster, v.Survey, v.logs)
	view.Erasures = shards.Unfinished(v.erasures, v.Survey)
	return view
}

// counts returns how many shards nobody owns, and how many belong to another node than they should.
func (v *survey) counts() (free, moving int) {
	for _, s := range v.Shards {
		if s.Node == "" {
			free++
		} else if s.Goal != "" && s.Goal != s.Node {
			moving++
		}
	}
	return free, moving
}

// print prints the survey as tables: all shards, or those that need attention.
func (v *survey) print(w io.Writer, all bool) error {
	var b strings.Builder
	free, moving := v.counts()
	fmt.Fprintf(&b, "cluster %s: %s, %s of %s without owner, %d moving\n", v.cluster,
		console.Plural(len(v.Members), "node"),
		console.Grouped(free), console.Plural(len(v.Shards), "shard"), moving)
	fmt.Fprintf(&b, "registers and logs on %s\n\n", v.serversText())
	rows := [][]string{{"node", "state", "shards", "weight", "heartbeat"}}
	for _, m := range v.Members {
		owns := console.Grouped(m.Owns)
		if m.Gets > 0 {
			owns += fmt.Sprintf(", gets %d", m.Gets)
		}
		rows = append(rows,
			[]string{m.Node, memberText(m.State), owns, console.Grouped(int(m.Weight)), console.Span(m.Beat) + " ago"})
	}
	console.WriteTable(&b, rows)
	for _, m := range v.Members {
		for _, note := range m.Notes {
			fmt.Fprintf(&b, "node %s: %s\n", m.Node, note)
		}
	}
	for _, e := range shards.Unfinished(v.erasures, v.Survey) {
		fmt.Fprintln(&b, erasureText(&e))
	}
	v.writeLogs(&b)
	v.writeShards(&b, all)
	_, err := io.WriteString(w, b.String())
	return err
}

// memberText is the state of a member with what it means.
func memberText(s membership.MemberState) string {
	switch s {
	case membership.Doubted:
		return "doubted: makes no request until it is heard of again"
	case membership.Dead:
		return "dead: others take its shards"
	case membership.Unreadable:
		return "unreadable: others take its shards"
	}
	return string(s)
}

func (v *survey) serversText() string {
	if len(v.Replicas) == 0 {
		return "one NATS server"
	}
	var servers []string
	for _, r := range v.Replicas {
		text := r.Server
		switch {
		case r.Leader:
			text += " (leader)"
		case r.Offline:
			text += " (OFFLINE)"
		case !r.Current:
			text += fmt.Sprintf(" (BEHIND by %s)", console.Plural(r.Lag, "message"))
		}
		servers = append(servers, text)
	}
	return console.Plural(len(servers), "NATS server") + ": " + strings.Join(servers, ", ")
}

// writeLogs says how much log and snapshots there are.
func (v *survey) writeLogs(b *strings.Builder) {
	var records, bytes, snapshots uint64
	number, largest := 0, 0
	for i := range v.logs {
		log := &v.logs[i]
		records, bytes = records+log.Records, bytes+log.Bytes
		if log.Records > v.logs[largest].Records {
			largest = i
		}
		if !log.At.IsZero() {
			number++
			snapshots += uint64(log.Snapshot.Size)
		}
	}
	fmt.Fprintf(b, "\nlog since the snapshots: %s, %s", console.Plural(records, "record"), console.Size(bytes))
	if records > 0 {
		fmt.Fprintf(b, "; most in shard %d: %s, %s", largest, console.Plural(v.logs[largest].Records, "record"),
			console.Size(v.logs[largest].Bytes))
	}
	fmt.Fprintf(b, "\nsnapshots: %d, %s\n", number, console.Size(snapshots))
}

// writeShards lists all shards, or those that move and those that nobody owns.
func (v *survey) writeShards(b *strings.Builder, all bool) {
	rows := [][]string{{"shard", "owner", "since", "log", "snapshot"}}
	for i, s := range v.Shards {
		moves := s.Goal != "" && s.Goal != s.Node
		if !all && s.Node != "" && s.Node != membership.UnknownOwner && !moves && s.Fault == nil {
			continue
		}
		owner, since, snapshot := s.Node, "", "none"
		if !s.Since.IsZero() {
			since = console.Span(v.At.Sub(s.Since)) + " ago"
		}
		if owner == "" {
			owner = "nobody"
		} else if owner == membership.UnknownOwner {
			owner = "unreadable"
		}
		if moves {
			owner += ", moves to " + s.Goal
		}
		if s.Fault != nil {
			owner += ", IN QUARANTINE"
		}
		log := &v.logs[i]
		if !log.At.IsZero() {
			snapshot = console.Size(uint64(log.Snapshot.Size)) + ", " + console.Span(v.At.Sub(log.At)) + " ago"
		}
		rows = append(rows, []string{console.Grouped(i), owner, since,
			console.Plural(log.Records, "record") + ", " + console.Size(log.Bytes), snapshot})
	}
	if len(rows) > 1 {
		b.WriteString("\n")
		console.WriteTable(b, rows)
	}
	for i, s := range v.Shards {
		if f := s.Fault; f != nil {
			fmt.Fprintf(b,
				"\nshard %d is in quarantine: its engine has failed %s in a row; it is tried again after a pause, "+
					"and the other shards go on\n  %s\n", i, console.Plural(f.Times, "time"), f.Reason)
			if f.Kind == "in" {
				fmt.Fprintf(b, "  amble cluster skip %d %d sets the message aside\n", i, f.Sequence)
			}
		}
	}
}
