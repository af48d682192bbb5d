//go:build !core

// Package command is amble plan.
package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/modules/plan"
	"github.com/amble-crawler/amble/internal/service/server"
)

// New returns the command.
func New(settings *access.Settings) *cobra.Command {
	var p console.Printer
	var hosts int
	command := &cobra.Command{
		Use:   "plan",
		Short: "Forecast the recrawl, and how fresh the copies are",
		Long: `Print the recrawl plan of a crawl with crawl.exit_when_done: false: which pages are fetched
again next, how often the pages of each host are recrawled, for what part of the time their copies are up to
date, and the effect of another budget (recrawl.budget). A running crawl answers over its API; otherwise the
database is opened read-only. The figures of a host come from a sample of its pages.

Of any crawl with archive.requisites it says what requisites cost, the style sheets, scripts, images and fonts
of pages: how many wait and how many are fetched, each by a request of its own, and how long those of one host
take at the delay in force. 80 images of a host with a delay of 1 s take 80 s.

Exit code 0: done. 1: there is no database, it cannot be used, or no page is recrawled and there are no
requisites. 2: wrong usage or settings. 3: another process has the database and no API answers.`,
		Example: `  amble plan
  amble plan --hosts 100 --json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if hosts < 0 || hosts > plan.MaxHosts {
				return console.Usagef("--hosts is %d, want 0 to %d", hosts, plan.MaxHosts)
			}
			return settings.Inspect(command.Context(), func(i access.Inspector) error {
				r, err := forecast(command.Context(), i, hosts)
				if err != nil {
					return err
				}
				w := bufio.NewWriter(command.OutOrStdout())
				err = p.Object(w, r, func(w io.Writer) error { return printPlan(w, &r) })
				return errors.Join(err, w.Flush())
			})
		},
	}
	p.ObjectFlag(command, "print one JSON object")
	command.Flags().IntVar(&hosts, "hosts", 20, "list at most this many of the hosts with the most pages")
	return command
}

// forecast returns the plan of the running crawl, or of its database.
func forecast(ctx context.Context, i access.Inspector, hosts int) (r plan.RecrawlPlan, err error) {
	if view, stored := i.(plan.View); stored {
		r, err = plan.Of(ctx, view, hosts)
	} else {
		r, err = plan.Running(ctx, i.(*server.Client), hosts)
	}
	if err == nil && r.Once && r.Requisites+r.RequisitesWaiting == 0 {
		err = errors.New(notRecrawled)
	}
	return r, err
}

const notRecrawled = "no page is recrawled, because crawl.exit_when_done is true or recrawl.policy is never"

func printPlan(w io.Writer, p *plan.RecrawlPlan) error {
	if p.Once {
		fmt.Fprintln(w, "N"+notRecrawled[1:]+".")
		printRequisites(w, p, "fetched, each by")
		return nil
	}
	fmt.Fprintf(w, "%s of %s are recrawled, %s a day", console.Plural(p.Pages, "page"), console.Plural(p.Hosts, "host"),
		console.Grouped(int(p.Visits+0.5)))
	if p.Budget > 0 {
		fmt.Fprintf(w, " of the %s that the budget allows", console.Grouped(int(p.Budget)))
	}
	fmt.Fprintln(w, ".")
	if p.Freshness != nil {
		fmt.Fprintf(w, "Their copies are up to date for %s of the time, by importance.\n", console.Percent(p.Freshness))
	}
	fmt.Fprintf(w, "Recrawls so far: %s.\n", console.Unchanged(p.Yield))
	printRequisites(w, p, "fetched again like pages, each by")
	if p.Inspected < p.Known {
		fmt.Fprintf(w, "%s of %s were inspected, evenly: counts of hosts are estimates, "+
			"and the lists are of these.\n", console.Grouped(p.Inspected), console.Plural(p.Known, "host"))
	}
	if p.Overdue > 0 {
		fmt.Fprintf(w, "%s with an overdue recrawl.\n", console.Plural(p.Overdue, "host"))
	}
	if p.Unplanned > 0 {
		fmt.Fprintf(w, "%s with pages that are not in the plan: the next run adds them, unless a rule says never.\n",
			console.Plural(p.Unplanned, "host"))
	}
	for _, part := range []func(io.Writer, *plan.RecrawlPlan) error{printBudgets, printPlanHosts, printNext} {
		if err := part(w, p); err != nil {
			return err
		}
	}
	return nil
}

// printRequisites says what requisites cost.
func printRequisites(w io.Writer, p *plan.RecrawlPlan, fetched string) {
	print := func(n int, what string, seconds float64) {
		if n > 0 {
			fmt.Fprintf(w, "%s %s a request of its own: those of one host take %s.\n",
				console.Are(n, "requisite"), what, console.Span(time.Duration(seconds*float64(time.Second))))
		}
	}
	print(p.RequisitesWaiting, "waiting, each for", p.RequisitesFinish)
	print(p.Requisites, fetched, p.RequisitesTake)
}

func printBudgets(w io.Writer, p *plan.RecrawlPlan) error {
	if len(p.Budgets) == 0 || p.Freshness == nil {
		return nil
	}
	fmt.Fprintln(w)
	t := console.NewTable(w, "BUDGET A DAY", "RECRAWLED A DAY", "UP TO DATE", "CHANGE")
	for _, b := range p.Budgets {
		change := "now"
		if b.Factor != 1 {
			change = fmt.Sprintf("%+.1f points", 100*(*b.Freshness-*p.Freshness))
		}
		if err := t.Row(console.Grouped(int(b.Budget)), console.Grouped(int(b.Visits+0.5)),
			console.Percent(b.Freshness), change); err != nil {
			return err
		}
	}
	return t.Flush()
}

func printPlanHosts(w io.Writer, p *plan.RecrawlPlan) error {
	if len(p.Largest) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := console.NewTable(w, "HOST", "PAGES", "RECRAWLED A DAY", "UP TO DATE", "NEXT", "RECRAWLS SO FAR")
	for _, h := range p.Largest {
		if err := t.Row(h.Host, console.Grouped(h.Pages), fmt.Sprintf("%.1f", h.Visits),
			console.Percent(h.Freshness), until(h.Next, p.At), console.Unchanged(h.Yield)); err != nil {
			return err
		}
	}
	return t.Flush()
}

func printNext(w io.Writer, p *plan.RecrawlPlan) error {
	if len(p.Next) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := console.NewTable(w, "NEXT", "URL", "CHANGES A DAY", "FETCHED")
	for _, n := range p.Next {
		changes := "-"
		if n.Changes != nil {
			changes = fmt.Sprintf("%.3g", *n.Changes)
		}
		if err := t.Row(until(n.Due, p.At), n.URL, changes, console.Span(p.At.Sub(n.Fetched))+" ago"); err != nil {
			return err
		}
	}
	return t.Flush()
}

// until formats when something is due.
func until(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + console.Span(at.Sub(now))
}
