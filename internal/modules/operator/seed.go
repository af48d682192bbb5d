//go:build !core

package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/service/server"
)

// seedLong is the description of amble seed.
const seedLong = `Add, list and remove the URLs that the crawl starts from, also while it runs.

A running crawl is told over its API and follows at once; otherwise the database is changed, which is created if there
is none. A seed that was added stays until it is removed. One that the settings name comes back with the next run, so
remove it there too.

Exit code 0: done. 1: there is no such seed, or the database cannot be used. 2: wrong usage or settings. 3: another
process has the database and no API answers.`

func newSeedCommand(settings *Program) *cobra.Command {
	o := opener(settings.Crawl)
	return console.Group("seed", "Add and remove seeds of a crawl", seedLong, o.newAdd(), o.newList(), o.newRemove())
}

// opener returns the crawl of the settings.
type opener func() (*access.Crawl, error)

// change finds who keeps the seeds, and has them changed.
func (o opener) change(ctx context.Context, w crawl.SeedWish) (done crawl.SeedCounts, err error) {
	c, err := o()
	if err != nil {
		return done, err
	}
	k, err := c.SeedKeeper(ctx)
	if err != nil {
		return done, err
	}
	done, err = k.ChangeSeeds(ctx, w)
	if errors.Is(err, inspect.ErrUnknown) {
		err = fmt.Errorf("%w: amble seed ls lists the seeds", err)
	}
	if err = errors.Join(err, k.Close()); err != nil {
		err = console.Exit(console.ExitProblem, err)
	}
	return done, err
}

func (o opener) newAdd() *cobra.Command {
	return &cobra.Command{
		Use: "add URL [FIELD=VALUE ...]", Short: "Add a seed, or say something else of it",
		Long: `Add a seed. URL may be a host such as example.com. The fields are those that crawl.seeds takes: scope,
include, exclude, max_depth, max_pages, hops, links, priority, recrawl, tags and store. Of a known seed they are
replaced.`,
		Example: "  amble seed add https://example.com/news/ scope=prefix tags=news,daily recrawl=1h\n" +
			"  amble seed add example.org max_depth=3 max_pages=500",
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usagef("%q takes URL [FIELD=VALUE ...], and nothing was given", command.CommandPath())
			}
			item, err := seeds.ParseLine(args[0])
			if err == nil {
				err = item.SetAll(args[1:])
			}
			if err != nil {
				return console.Usagef("%w", err)
			}
			done, err := o.change(command.Context(), crawl.SeedWish{Add: []crawl.Seed{item.Seed(server.SeedSource)}})
			if err != nil {
				return err
			}
			what := "known"
			switch {
			case done.Added > 0:
				what = "added"
			case done.Changed > 0:
				what = "changed"
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", what, item.URL)
			return err
		},
	}
}

func (o opener) newRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm URL ...", Aliases: []string{"remove"}, Short: "Remove seeds",
		Long: `Remove seeds. Their pages that wait, and are of no other seed, are excluded in the background, or when
the crawl runs again. What was fetched stays.`,
		Example: "  amble seed rm https://example.com/news/\n" +
			"  amble seed rm https://example.com/ https://example.org/",
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usagef("%q takes URL ..., and nothing was given", command.CommandPath())
			}
			var w crawl.SeedWish
			for _, text := range args {
				u, _, err := seeds.ParseURL(text)
				if err != nil {
					return console.Usagef("%.80q %w", text, err)
				}
				w.Remove = append(w.Remove, u)
			}
			if _, err := o.change(command.Context(), w); err != nil {
				return err
			}
			for _, u := range w.Remove {
				if _, err := fmt.Fprintf(command.OutOrStdout(), "removed: %s\n", u); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (o opener) newList() *cobra.Command {
	p := console.Printer{}
	command := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List the seeds", Args: console.NoArguments,
		Long: "List the seeds by URL, what is said of each and where it was given, and where redirects of seeds led.",
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := o()
			if err != nil {
				return err
			}
			list, err := c.Seeds(command.Context())
			if err != nil {
				return err
			}
			return p.Object(command.OutOrStdout(), list, func(w io.Writer) error { return printSeeds(w, list) })
		},
	}
	p.ObjectFlag(command, "print them as a JSON array")
	return command
}

func printSeeds(w io.Writer, list []server.SeedEntry) error {
	t := console.NewTable(w, "URL", "TAGS", "FIELDS", "SOURCE")
	for i := range list {
		s := &list[i]
		source := s.Source
		if s.Of != "" {
			source = "redirect of " + s.Of
		}
		fields, err := fieldsText(s.Fields)
		if err != nil {
			return err
		}
		err = t.Row(s.URL, orDash(strings.Join(s.Tags, ",")), orDash(fields), console.Printable(orDash(source)))
		if err != nil {
			return err
		}
	}
	return t.Flush()
}

// fieldsText returns the fields of a seed but its tags, as they are given: max_depth=3 scope=prefix.
func fieldsText(f seeds.Fields) (string, error) {
	f.Tags = nil
	b, err := json.Marshal(&f)
	if err != nil {
		return "", err
	}
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(b, &byName); err != nil {
		return "", err
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		texts = append(texts, name+"="+strings.Trim(string(byName[name]), `"`))
	}
	return console.Printable(strings.Join(texts, " ")), nil
}

func orDash(text string) string { return cmp.Or(text, "-") }
