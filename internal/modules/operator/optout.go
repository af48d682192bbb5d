//go:build !core

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/optout"
)

const optOutLong = `Record the wishes of people that their sites be left alone. Nothing of what an opt-out covers is
requested any more, robots.txt included, whatever seeds, imports and settings say. docs/CONSENT.md explains it.

A running crawl is told over its API, and obeys at once; otherwise the database is changed, which is created if
there is none. The file of consent.optout has more opt-outs.

Exit code 0: done. 1: there is no such opt-out, or the database cannot be used. 2: wrong usage or settings. 3:
another process has the database and no API answers.`

func newOptOutCommand(settings *Program) *cobra.Command {
	return console.Group("optout", "Never fetch from a host, domain, address or prefix", optOutLong,
		newOptOutAdd(settings), newOptOutList(settings), newOptOutRemove(settings))
}

// keepOptOut finds the keeper and calls f with it.
func keepOptOut(ctx context.Context, settings *Program, f func(access.OptOutKeeper) error) error {
	c, err := settings.Crawl()
	if err != nil {
		return err
	}
	k, err := c.OptOutKeeper(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(f(k), k.Close())
	switch {
	case err == nil:
		return nil
	case errors.Is(err, inspect.ErrUnknown):
		err = fmt.Errorf("%w: amble optout list lists them; those of consent.optout are removed from that file", err)
	}
	return console.Exit(console.ExitProblem, err)
}

// offerScopes adds the flag of the scope.
func offerScopes(command *cobra.Command, scope *string) {
	command.Flags().StringVar(scope, "scope", string(optout.ScopeHost), "what VALUE is: host, domain, range or prefix")
	console.Offer(command, "scope", []string{"host", "domain", "range", "prefix"})
}

func newOptOutAdd(settings *Program) *cobra.Command {
	var scope, reason, by, until string
	command := &cobra.Command{
		Use: "add VALUE", Short: "Record an opt-out",
		Long: "Record an opt-out. VALUE is a host name, with --scope domain a name and all below it, with --scope " +
			"range\n" +
			"addresses, with --scope prefix the beginning of URLs. One of the same scope and value is replaced.",
		Example: "  amble optout add www.example.com --reason \"letter of 2026-11-20\"\n" +
			"  amble optout add example.org --scope domain --reason \"mail of 2026-11-20\"\n" +
			"  amble optout add 192.0.2.0/24 --scope range\n" +
			"  amble optout add https://example.net/diary/ --scope prefix --until 2027-01-31",
		Args: console.Exactly(1, "VALUE"),
		RunE: func(command *cobra.Command, args []string) (err error) {
			e := optout.Entry{Scope: optout.Scope(scope), Value: args[0], Reason: reason, By: by, At: time.Now()}
			if until != "" {
				if e.Until, err = optout.ParseUntil(until); err != nil {
					return console.Usagef("--until: %w", err)
				}
			}
			if e, err = optout.New(e); err != nil {
				return console.Usagef("%w", err)
			}
			err = keepOptOut(command.Context(), settings, func(k access.OptOutKeeper) error {
				return k.AddOptOut(command.Context(), e)
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), "recorded: "+console.Printable(e.String()))
			return err
		},
	}
	offerScopes(command, &scope)
	flags := command.Flags()
	flags.StringVar(&reason, "reason", "", "who wished it and how, for people")
	flags.StringVar(&by, "by", userName(), "who records it")
	flags.StringVar(&until, "until", "",
		"last `day` on which it is in force, or an instant of RFC 3339; empty: for ever")
	flags.Lookup("by").DefValue = "the name of the user"
	return command
}

// userName is the name of the user of this process; empty: it has none.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

func newOptOutRemove(settings *Program) *cobra.Command {
	var scope string
	command := &cobra.Command{
		Use: "remove VALUE", Short: "Remove an opt-out",
		Long: "Remove an opt-out that a command recorded. URLs that it excluded go back into their queues, in the\n" +
			"background or when the crawl runs again.",
		Example: "  amble optout remove example.org --scope domain",
		Args:    console.Exactly(1, "VALUE"),
		RunE: func(command *cobra.Command, args []string) error {
			e, err := optout.New(optout.Entry{Scope: optout.Scope(scope), Value: args[0]})
			if err != nil {
				return console.Usagef("%w", err)
			}
			return keepOptOut(command.Context(), settings, func(k access.OptOutKeeper) error {
				return k.RemoveOptOut(command.Context(), e.Scope, e.Value)
			})
		},
	}
	offerScopes(command, &scope)
	return command
}

func newOptOutList(settings *Program) *cobra.Command {
	p := console.Printer{}
	command := &cobra.Command{
		Use: "list", Short: "List the opt-outs", Args: console.NoArguments,
		Long: "List the opt-outs that commands recorded and those of the file consent.optout, by scope and value.",
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.Crawl()
			if err != nil {
				return err
			}
			list, err := c.OptOuts(command.Context())
			if err != nil {
				return err
			}
			return p.Object(command.OutOrStdout(), list, func(w io.Writer) error { return printOptOuts(w, list) })
		},
	}
	p.ObjectFlag(command, "print them as a JSON array")
	return command
}

func printOptOuts(w io.Writer, list []crawl.OptOut) error {
	t := console.NewTable(w, "SCOPE", "VALUE", "SINCE", "UNTIL", "BY", "SOURCE", "REASON")
	for i := range list {
		if err := t.Row(optOutCells(&list[i])...); err != nil {
			return err
		}
	}
	return t.Flush()
}

func optOutCells(o *crawl.OptOut) []string {
	until := "-"
	if !o.Until.IsZero() {
		until = o.Until.Format("2006-01-02 15:04 UTC")
	}
	if !o.InForce {
		until += " (ended)"
	}
	return []string{string(o.Scope), o.Value, o.At.Format(time.DateOnly), until, console.Printable(o.By), o.Source,
		console.Printable(o.Reason)}
}
