//go:build !core

// Package command is amble erase on the command line.
package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/console/arguments"
	"github.com/amble-crawler/amble/internal/modules/erase"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Program is what the command needs of the program.
type Program struct {
	Load     func() (*config.Config, error)                                        // the settings
	Options  func(c *config.Config, step func(text string)) (erase.Options, error) // those of an erasure by them
	Complete cobra.CompletionFunc                                                  // names of hosts
}

// eraseCommand is the command with its flags.
type eraseCommand struct {
	Program
	scope          string
	output, dryRun bool
	resume, asJSON bool
}

// New returns amble erase.
func New(p Program) *cobra.Command {
	f := eraseCommand{Program: p}
	command := &cobra.Command{
		Use:   "erase HOST|DOMAIN",
		Short: "Remove all that is kept of a host or a domain",
		Long: `Remove all that is kept of a host and of all names below it, or with --scope host of the host
alone: its URLs and their outcomes, its robots.txt files, the requests to it in the request log and in the
start ledger, crash files, and what other hosts' URLs say of its pages. All crawls of the data directory are
searched, those of clients of URLFrontier too. With --output also its records in the
output files, whose indexes are made again; ` + erase.TombstoneFile + ` in output.dir then says how many records
went from which file.

The files are written again without it, so that nothing of it is left in free pages either. That needs room
for a second copy of the largest of them. The crawl must not be running. After an interruption, amble run or
amble erase --resume goes on. Copies of the database, moved output files and logs are not touched.

A host that is erased is fetched again if a page links to it: amble optout add prevents that.

Exit code 0: done. 1: there is no database, a file cannot be read or written, or the erasure was interrupted.
2: wrong usage or settings. 3: another process has the database.`,
		Example: `  amble erase example.org --dry-run
  amble erase example.org --output
  amble erase www.example.org --scope host
  amble erase --resume`,
		Args: console.AtMostOne("host"),
		RunE: func(command *cobra.Command, args []string) error { return f.run(command, args) },
	}
	flags := command.Flags()
	flags.StringVar(&f.scope, "scope", "",
		"host or domain: the name alone, or all names below it too (default domain; host for an address)")
	flags.BoolVar(&f.output, "output", false, "erase from the files in output.dir too")
	flags.BoolVar(&f.dryRun, "dry-run", false, "count and change nothing")
	flags.BoolVar(&f.resume, "resume", false, "go on with an erasure that was interrupted")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	command.MarkFlagsMutuallyExclusive("resume", "dry-run")
	command.MarkFlagsMutuallyExclusive("resume", "output")
	command.MarkFlagsMutuallyExclusive("resume", "scope")
	console.Offer(command, "scope", []string{string(optout.ScopeHost), string(optout.ScopeDomain)})
	command.ValidArgsFunction = p.Complete
	return command
}

func (f *eraseCommand) run(command *cobra.Command, args []string) error {
	if f.resume != (len(args) == 0) {
		return console.Usagef("%q takes one host or domain, or --resume", command.CommandPath())
	}
	names := weburl.Names{}
	if len(args) == 1 {
		var err error
		if names, err = arguments.Names(f.scope, args[0]); err != nil {
			return err
		}
	}
	c, err := f.Load()
	if err != nil {
		return err
	}
	if c.InCluster() {
		return console.Exit(console.ExitUsage, errors.New("the settings are those of a node of a cluster: "+
			"amble cluster erase removes a host from all nodes and from the NATS servers"))
	}
	ctx, stop := console.UntilInterrupted(command.Context())
	defer stop()
	o, err := f.Options(c, func(text string) { fmt.Fprintln(command.ErrOrStderr(), text) })
	if err != nil {
		return err
	}
	o.Names, o.Output, o.DryRun = names, f.output, f.dryRun
	var r *erase.Report
	if f.resume {
		r, err = erase.Resume(ctx, o)
	} else {
		r, err = erase.Run(ctx, o)
	}
	if err != nil {
		return failure(ctx, c, err)
	}
	if r == nil {
		_, err = fmt.Fprintln(command.OutOrStdout(), "No erasure was interrupted.")
		return err
	}
	return f.print(command.OutOrStdout(), c, r)
}

// failure gives the error of an erasure an exit code.
func failure(ctx context.Context, c *config.Config, err error) error {
	switch {
	case errors.Is(err, storage.ErrLogged):
		return console.Exit(console.ExitProblem,
			fmt.Errorf("%w: amble cluster erase removes a host from all nodes and "+
				"from the NATS servers. Nothing was erased; what was interrupted here goes on when the node runs", err))
	case errors.Is(err, context.Canceled):
		return console.Exit(console.ExitProblem,
			errors.New("interrupted: amble erase --resume goes on, and so does the next amble run"))
	case errors.Is(err, archive.ErrMissing), errors.Is(err, archive.ErrShort):
		return console.Exit(console.ExitProblem, fmt.Errorf("%w; then amble erase --resume", err))
	}
	return access.DatabaseError(ctx, c, err)
}
