//go:build !core

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/cluster/shards"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/node"
	"github.com/amble-crawler/amble/internal/modules/erase"
	"github.com/amble-crawler/amble/internal/modules/warc/warcfiles"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// eraseFlags are the flags of amble erase.
type eraseFlags struct {
	scope          string
	output, dryRun bool
	resume, asJSON bool
}

// erasureModule removes all that is kept of a host.
func erasureModule() module { return module{command: newEraseCommand, prepare: endErasure} }

func newEraseCommand(settings *settingsFlags) *cobra.Command {
	f := eraseFlags{}
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
		RunE: func(command *cobra.Command, args []string) error { return f.run(command, settings, args) },
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
	command.ValidArgsFunction = completeHostArgument(settings)
	return command
}

func (f *eraseFlags) run(command *cobra.Command, settings *settingsFlags, args []string) error {
	if f.resume != (len(args) == 0) {
		return console.Usagef("%q takes one host or domain, or --resume", command.CommandPath())
	}
	names := weburl.Names{}
	if len(args) == 1 {
		var err error
		if names, err = access.Names(f.scope, args[0]); err != nil {
			return err
		}
	}
	c, err := settings.load()
	if err != nil {
		return err
	}
	if c.InCluster() {
		return console.Exit(console.ExitUsage, errors.New("the settings are those of a node of a cluster: "+
			"amble cluster erase removes a host from all nodes and from the NATS servers"))
	}
	ctx, stop := console.UntilInterrupted(command.Context())
	defer stop()
	o, err := eraseOptions(c, func(text string) { fmt.Fprintln(command.ErrOrStderr(), text) })
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
		return eraseError(ctx, c, err)
	}
	if r == nil {
		_, err = fmt.Fprintln(command.OutOrStdout(), "No erasure was interrupted.")
		return err
	}
	return f.print(command.OutOrStdout(), c, r)
}

// outputFiles returns the files of an output directory, for an erasure.
func outputFiles(dir string, known []archive.Format, names weburl.Names) erase.Files {
	return warcfiles.NewEraser(dir, known, names)
}

// eraseDirectory erases hosts from the directory of a shard. It is shards.Options.Erase.
func eraseDirectory(ctx context.Context, d shards.Directory) (n shards.Erased, err error) {
	o := erase.Options{
		Crawl: d.Crawl, Names: d.Names, Output: d.Output, Now: time.Now, Logged: true, NoDatabase: !d.Database,
		Files: outputFiles,
	}
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

// eraseError gives the error of an erasure an exit code.
func eraseError(ctx context.Context, c *config.Config, err error) error {
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

// print prints what was erased.
func (f *eraseFlags) print(w io.Writer, c *config.Config, r *erase.Report) error {
	if f.asJSON {
		return errors.Join(console.WriteJSON(w, r), unreadable(r))
	}
	var b strings.Builder
	subject := r.Name
	if r.Below {
		subject += " and all names below it"
	}
	switch {
	case r.IsEmpty():
		fmt.Fprintf(&b, "Nothing is kept of %s.\n", subject)
	case r.DryRun:
		fmt.Fprintf(&b, "Would erase %s:\n", subject)
	default:
		fmt.Fprintf(&b, "Erased %s:\n", subject)
	}
	if !r.IsEmpty() {
		console.WriteTable(&b, erasedRows(r))
	}
	for _, id := range slices.Sorted(maps.Keys(r.Crawls)) {
		fmt.Fprintf(&b, "Of crawl %s:\n", console.Printable(id))
		console.WriteTable(&b, erasedRows(r.Crawls[id]))
	}
	writeEraseHints(&b, c, r, f)
	_, err := io.WriteString(w, b.String())
	return errors.Join(err, unreadable(r))
}

// unreadable returns an error if files are damaged.
func unreadable(r *erase.Report) error {
	var lines []string
	for _, file := range slices.Sorted(maps.Keys(r.Unreadable)) {
		lines = append(lines, r.Unreadable[file])
	}
	for _, id := range slices.Sorted(maps.Keys(r.Crawls)) {
		other := r.Crawls[id]
		for _, file := range slices.Sorted(maps.Keys(other.Unreadable)) {
			lines = append(lines, "crawl "+console.Printable(id)+": "+other.Unreadable[file])
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return console.Exit(console.ExitProblem,
		fmt.Errorf("%s damaged and unchanged, so what it holds is not known: repair it or move it "+
			"away, and repeat the command: %s", console.Are(len(lines), "file"), strings.Join(lines, "; ")))
}

func erasedRows(r *erase.Report) [][]string {
	d := r.Database
	rows := [][]string{
		{"hosts", console.Grouped(d.Hosts)},
		{"URLs", fmt.Sprintf("%s, %s of them with an outcome", console.Grouped(d.URLs), console.Grouped(d.Outcomes))},
		{"robots.txt",
			fmt.Sprintf("%s, %s with earlier versions", console.Grouped(d.Robots), console.Grouped(d.History))},
		{"scope seeds", console.Grouped(d.Seeds)},
		{"references", fmt.Sprintf("%s from URLs of other hosts, %s in other values", console.Grouped(d.References),
			console.Grouped(d.Mentions))},
		{"request log",
			fmt.Sprintf("%s, of %s", console.Plural(r.LoggedRequests(), "request"),
				console.Plural(len(r.Requests), "file"))},
		{"start ledger", console.Plural(r.Ledger, "line")},
		{"crash files", console.Grouped(r.Crashes)},
	}
	if len(r.Output) == 0 {
		return rows
	}
	kinds := make(map[string]int)
	for _, file := range r.Output {
		for kind, n := range file.Records {
			kinds[kind] += n
		}
	}
	var texts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		texts = append(texts, kind+" "+console.Grouped(kinds[kind]))
	}
	return append(rows, []string{"output", fmt.Sprintf("%s of %s: %s", console.Plural(r.Records(), "record"),
		console.Plural(len(r.Output), "file"), strings.Join(texts, ", "))})
}

// writeEraseHints says what is left, and what people usually want next.
func writeEraseHints(b *strings.Builder, c *config.Config, r *erase.Report, f *eraseFlags) {
	for _, file := range slices.Sorted(maps.Keys(r.Mentions)) {
		fmt.Fprintf(b, "%s still names it %s, in what is kept of others.\n", filepath.Join(c.DataDir, file),
			console.Plural(r.Mentions[file], "time"))
	}
	if !f.output && !f.resume {
		fmt.Fprintf(b, "The output in %s was not searched: --output does that.\n", c.OutputDir())
	}
	names, seeds := weburl.Names{Name: r.Name, Below: r.Below}, 0
	config.VisitSeeds(c, nil, func(s crawl.Seed) {
		if names.Has(s.URL.Host()) {
			seeds++
		}
	}, func(config.BadSeed) {})
	if seeds > 0 {
		fmt.Fprintf(b, "%s of the settings would be fetched again by the next run: remove them.\n",
			console.Plural(seeds, "seed"))
	}
	if r.DryRun {
		return
	}
	scope := optout.ScopeHost
	if r.Below {
		scope = optout.ScopeDomain
	}
	fmt.Fprintf(b, "Copies of the database and moved output files are not erased. So that it is not fetched again:\n"+
		"  amble optout add %s --scope %s\n", r.Name, scope)
}
