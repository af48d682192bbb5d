//go:build !core

package command

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/erase"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// print prints what was erased.
func (f *eraseCommand) print(w io.Writer, c *config.Config, r *erase.Report) error {
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
		console.WriteTable(&b, rowsOf(r))
	}
	for _, id := range slices.Sorted(maps.Keys(r.Crawls)) {
		fmt.Fprintf(&b, "Of crawl %s:\n", console.Printable(id))
		console.WriteTable(&b, rowsOf(r.Crawls[id]))
	}
	writeHints(&b, c, r, f)
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

func rowsOf(r *erase.Report) [][]string {
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

// writeHints says what is left, and what people usually want next.
func writeHints(b *strings.Builder, c *config.Config, r *erase.Report, f *eraseCommand) {
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
