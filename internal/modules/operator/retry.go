//go:build !core

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/service/server"
)

// retryFlags are the flags of amble retry.
type retryFlags struct {
	console.Printer
	query   server.Retry
	reasons []string
}

func newRetryCommand(settings *Program) *cobra.Command {
	f := retryFlags{}
	return f.command(settings, &cobra.Command{
		Use:   "retry [URL...]",
		Short: "Put URLs that failed, were denied or excluded back into their queues",
		Long: `Put URLs of the crawl in data_dir back into their queues: those that are named, or that match all of
--state, --reason, --status, --host, --seed, --tag, --contains and --pattern. At least one of these is required.
The URLs are due at once; the delays and the backoff of their hosts, and robots.txt, apply to them as to any
other URL. With --dry-run they are only counted.

A running crawl receives the command over its API and executes it in the background. What the command reports
is on disk, and if it is interrupted the crawl continues. Otherwise the database is changed, and the next run
requests the URLs.

A run puts back by itself the URLs whose reason a change of its settings removes: docs/ERRORS.md lists which
settings remove which reasons.

States: ` + strings.Join(retryStates(), ", ") + `.
Reasons: ` + wrapped(inspect.ReasonNames(), 100) + `.

` + retryExits,
		Example: `  amble retry --state failed --dry-run
  amble retry --reason blocked_address --reason certificate
  amble retry --state failed --host www.example.com
  amble retry --status 503 --status 429
  amble retry --state failed --tag news
  amble retry --seed https://www.example.com/ --reason depth
  amble retry --reason status --pattern '^https://www\.example\.com/api/'`,
	}, retryStates())
}

const retryExits = `Exit code 0: done. 1: the host or the seed is not known, there is no database, it cannot be
used, or the crawl ended meanwhile. 2: wrong usage or settings. 3: another process has the database and no API answers.`

func newDropCommand(settings *Program) *cobra.Command {
	f := retryFlags{query: server.Retry{Drops: true}}
	return f.command(settings, &cobra.Command{
		Use:   "drop [URL...]",
		Short: "Leave URLs out: they are not fetched, also when they are found again",
		Long: `Leave URLs of the crawl in data_dir out: those that are named, or that match all of --state, --reason,
--status, --host, --seed, --tag, --contains and --pattern. At least one of these is required. Without --state
only URLs that wait are left out, of those that are named all. With --dry-run they are only counted.

They are excluded for the reason operator: neither fetched nor recrawled, and known, so that links to them change
nothing. What was stored of them stays; amble erase removes that of a host. amble retry --reason operator undoes it.
A scope.exclude in the settings also keeps out URLs that are found later.

A running crawl receives the command over its API and executes it in the background. Requests in flight may finish.
What the command reports is on disk, and if it is interrupted the crawl continues. Otherwise the database is changed.

States: ` + strings.Join(dropStates(), ", ") + `.

` + retryExits,
		Example: `  amble drop --contains /calendar/ --dry-run
  amble drop --host www.example.com --pattern '\?sort='
  amble drop --state failed --status 404
  amble drop https://www.example.com/a https://www.example.com/b`,
	}, dropStates())
}

// command adds the flags.
func (f *retryFlags) command(settings *Program, command *cobra.Command, states []string) *cobra.Command {
	command.Args = cobra.ArbitraryArgs
	command.RunE = func(command *cobra.Command, urls []string) error {
		f.query.URLs = urls
		return f.run(command, settings)
	}
	flags := command.Flags()
	flags.StringSliceVar(&f.query.States, "state", nil, "only URLs in this `state`; may be repeated")
	flags.StringSliceVar(&f.reasons, "reason", nil,
		"only URLs that are in their state for this `reason`; may be repeated")
	flags.IntSliceVar(&f.query.Statuses, "status", nil, "only URLs whose last response had this `status`; may be "+
		"repeated")
	flags.StringVar(&f.query.Host, "host", "", "only URLs of this `host`")
	flags.StringVar(&f.query.Seed, "seed", "", "only pages of this seed, by its `URL`")
	flags.StringVar(&f.query.Tag, "tag", "", "only pages of seeds with this `tag`")
	flags.StringVar(&f.query.Contains, "contains", "", "only URLs with this `text` in them")
	flags.StringVar(&f.query.Pattern, "pattern", "", "only URLs that match this regular `expression` (RE2)")
	flags.BoolVar(&f.query.DryRun, "dry-run", false, "count them and change nothing")
	f.ObjectFlag(command, "print the counts as one JSON object")
	console.Offer(command, "state", states)
	console.Offer(command, "reason", inspect.ReasonNames())
	settings.OfferHosts(command)
	return command
}

// retryStates are the states that a URL can be put back from.
func retryStates() []string {
	return []string{"failed", "denied", "excluded", "redirected", "retrying"}
}

// dropStates are the states in which a URL can be left out.
func dropStates() []string {
	return []string{"queued", "retrying", "failed", "denied", "redirected", "fetched"}
}

func (f *retryFlags) run(command *cobra.Command, settings *Program) error {
	for _, name := range f.reasons {
		f.query.Reasons = append(f.query.Reasons, server.ReasonName(name))
	}
	selection, err := f.query.Selection()
	if err != nil {
		return console.Usagef("%w", err)
	}
	c, err := settings.Crawl()
	if err != nil {
		return err
	}
	ctx, stop := console.UntilInterrupted(command.Context())
	defer stop()
	r, err := c.Retrier(ctx, f.query.DryRun)
	if err != nil {
		return err
	}
	done, err := r.Retry(ctx, f.query, selection, console.RetryProgress(command.ErrOrStderr(), time.Now))
	return f.ended(command, done, errors.Join(err, r.Close()))
}

// changed is a sweep.Retried with what applies, also if it is 0.
type changed struct {
	Inspected uint64  `json:"looked"`
	Back      *uint64 `json:"back,omitempty"`
	Dropped   *uint64 `json:"dropped,omitempty"`
}

// ended prints the result.
func (f *retryFlags) ended(command *cobra.Command, done sweep.Retried, err error) error {
	if err != nil && !errors.Is(err, context.Canceled) {
		return unknown(console.Exit(console.ExitProblem, err))
	}
	verb, urls, report := "put back", done.Back, changed{Inspected: done.Inspected, Back: &done.Back}
	if f.query.Drops {
		verb, urls, report = "left out", done.Dropped, changed{Inspected: done.Inspected, Dropped: &done.Dropped}
	}
	if f.query.DryRun {
		verb = "to be " + verb
	}
	printing := f.Object(command.OutOrStdout(), report, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s %s, of %s inspected\n", console.Plural(urls, "URL"), verb,
			console.Grouped(done.Inspected))
		return err
	})
	if err != nil {
		return console.Exit(console.ExitProblem,
			errors.New("interrupted; a running crawl continues, without one repeat the command"))
	}
	return printing
}
