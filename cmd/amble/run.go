package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/storage"
)

func newRunCommand(settings *settingsFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "run [URL...]",
		Short: "Crawl, or go on with a crawl",
		Long: `Crawl from the seeds of the settings (crawl.seeds, crawl.seeds_file) and from the URLs given here, or go on with the crawl
that is in data_dir. What is known is not fetched again; new seeds are added to what is there. It ends
when everything that can be asked within crawl.give_up_after is done; hosts that want to be left alone for longer are listed
as postponed, and the next run goes on with them.

A bad seed is reported with its place, and the good ones go on. Where seeds are given and none can be used, nothing is begun.

The first SIGINT or SIGTERM stops: what is in flight may end within crawl.shutdown_grace, then all is committed. Another one, at least a second
later, stops at once; even that loses nothing that was committed. amble status tells how a running crawl stands.

SIGHUP, where the messages do not go to a terminal, makes it read the config file again: the settings that may change while a crawl runs take
effect, all of them or, where one is wrong or may not change, none. The API can change them too.

On a terminal one block of lines shows the progress; without one there is a line of the log every ten seconds.
Messages go to standard error, the summary at the end to standard output.

Exit code 0: all is done, postponed, or stopped by a signal. 1: it had to stop, or the database cannot be used.
2: wrong settings or usage, no seed that can be used, or nothing to crawl. 3: another process has the database.
4: no seed could be fetched, the summary says why. 130: stopped at once by a second signal.`,
		Example: `  amble run https://example.com/
  amble run -c site.yaml
  amble run --set data_dir=/srv/crawl --set crawl.max_pages=500 https://example.com/docs/
  amble run --set crawl.seeds_file=seeds.txt --set scope.mode=domain`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"https://"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(command *cobra.Command, urls []string) error {
			c, err := settings.load()
			if err != nil {
				return err
			}
			return runCrawl(command, c, settings.patched, urls)
		},
	}
}

func runCrawl(command *cobra.Command, c *config.Config, load func([]byte) (*config.Config, error), urls []string) error {
	k := newCrawling(c, load, command.ErrOrStderr())
	for _, w := range c.Warnings() {
		k.notice("warning", w)
	}
	seeds, err := readSeeds(c, urls, func(text string) { k.notice("bad seed", text) })
	if err != nil {
		return err
	}
	if err := somethingToCrawl(c, len(seeds.good)); err != nil {
		return err // and no directory is made for it
	}
	if text := nothingInScope(c, len(seeds.good)); text != "" {
		k.notice("warning", text)
	}
	k.seeds = seeds.good
	out, err := k.run(command.Context())
	if err != nil {
		return err
	}
	if err := printSummary(command.OutOrStdout(), c, out, seeds.bad); err != nil {
		return err
	}
	if out.Seeds.Failed && !out.Stopped {
		return exit(exitNoSeed, nil)
	}
	return nil
}

func hasDatabase(c *config.Config) bool {
	_, err := os.Stat(filepath.Join(c.DataDir, storage.FileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// somethingToCrawl refuses a crawl that has nothing to do and never will.
func somethingToCrawl(c *config.Config, seeds int) error {
	switch {
	case seeds > 0 || hasDatabase(c):
		return nil
	case c.Crawl.ExitWhenDone:
		return exit(exitUsage, crawl.ErrNothing)
	case c.Server.Listen == "":
		return exit(exitUsage, errors.New("there is nothing to crawl, and no API by which URLs could come: give seeds, or set server.listen"))
	}
	return nil
}

// nothingInScope says what keeps URLs out that are given to a crawl without seeds.
func nothingInScope(c *config.Config, seeds int) string {
	if seeds > 0 || hasDatabase(c) || c.Scope.Mode == "any" {
		return ""
	}
	return fmt.Sprintf("%s: scope.mode is %s and there are no seeds, so every URL that is given to this crawl is outside its scope; set scope.mode: any, or crawl.seeds",
		c.Source("scope.mode"), c.Scope.Mode)
}
