//go:build !core

// Package command is amble fetch.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/modules/fetchurl"
	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Program is what the command needs of the program.
type Program struct {
	// Crawl returns the crawl of the settings.
	Crawl func() (*access.Crawl, error)
	// Open opens a crawl in this process, whose messages go to the writer, with its options changed.
	Open func(context.Context, *config.Config, io.Writer, func(change *crawl.Options)) (*crawl.Engine, error)
	Now  func() time.Time
}

// flags are those of amble fetch.
type flags struct {
	console.Printer
	Program
	wait      time.Duration
	redirects int
	links     bool
}

// New returns the command.
func New(p Program) *cobra.Command {
	f := flags{Program: p}
	command := &cobra.Command{
		Use:   "fetch URL",
		Short: "Fetch a URL now, within politeness, and show all that a crawl learns of it",
		Long: `Fetch a URL, and show what robots.txt says about it and by which line, the request, the response with its
header, and what a crawl reads out of the page: directives, preferences about its use, fields, links. A page that
has scripts, hardly a link and hardly text "needs a browser": its content is not in what the server sends.
Redirects are followed, each as a fetch of its own.

No request is made that a crawl would not make: robots.txt comes first, opt-outs and consent.* count, and the delay
of the host is kept. A running crawl makes the request, in the queue of the host and before its other URLs; in a
cluster the node makes it that has the host. Without a running crawl the command waits for what data_dir knows of
the host, and what it requests is in the logs there, so that the next crawl waits too; data_dir is created if it
does not exist. The URL need not be in scope. It does not become a URL of the crawl, nor do its links, and the
output does not have it.

With --json the output is one object: fetches has a report for the URL and for each redirect; the line that the output
of a crawl would have of a page is in its page.

Exit code 0: there is a page. 1: there is none, or the host did not become free within --wait: the report says
why. 2: wrong usage or settings. 3: another process has the database and no API answers.`,
		Example: `  amble fetch https://example.com/
  amble fetch https://example.com/item/7 --json
  amble fetch https://example.com/slow --wait 1h --links
  amble fetch http://example.com/ --redirects 0`,
		Args: console.Exactly(1, "one URL"),
		RunE: func(command *cobra.Command, args []string) error {
			u, err := weburl.Parse(args[0])
			if err != nil {
				return console.Usagef("%w", err)
			}
			return f.run(command, u)
		},
	}
	set := command.Flags()
	set.DurationVar(&f.wait, "wait", 5*time.Minute, "wait at most this `long` for the host")
	set.IntVar(&f.redirects, "redirects", 5, "follow at most this `many` redirects")
	set.BoolVar(&f.links, "links", false, "list all links")
	f.ObjectFlag(command, "print one JSON object")
	return command
}

// fetches is the JSON of amble fetch.
type fetches struct {
	Fetches []*fetchurl.FetchedURL `json:"fetches"`
}

func (f *flags) run(command *cobra.Command, u weburl.URL) error {
	c, err := f.Crawl()
	if err != nil {
		return err
	}
	ctx, stop := console.UntilInterrupted(command.Context())
	defer stop()
	fetch, closing, err := f.open(ctx, command.ErrOrStderr(), c)
	if err != nil {
		return err
	}
	all, err := f.chain(ctx, command.ErrOrStderr(), fetch, u)
	if err = errors.Join(err, closing()); err != nil {
		return console.Exit(console.ExitProblem, err)
	}
	err = f.Object(command.OutOrStdout(), fetches{all}, func(w io.Writer) error {
		for i, r := range all {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if err := r.Print(w, f.links); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && all[len(all)-1].Outcome != fetchurl.Fetched {
		err = console.Exit(console.ExitProblem, nil)
	}
	return err
}

// fetcher makes one fetch, or reports that its host is not free yet.
type fetcher func(context.Context, weburl.URL) (*fetchurl.FetchedURL, error)

// chain fetches a URL, and where it redirects.
func (f *flags) chain(ctx context.Context, messages io.Writer, fetch fetcher, u weburl.URL) (
	all []*fetchurl.FetchedURL, err error) {
	until := f.Now().Add(f.wait)
	for said := ""; ; {
		r, err := fetch(ctx, u)
		if err != nil {
			return nil, err
		}
		if r.Outcome == fetchurl.Waiting && f.Now().Before(until) {
			if said != r.Reason {
				said = r.Reason
				fmt.Fprintf(messages, "%s: %s\n", u, console.Printable(said))
			}
			continue
		}
		all = append(all, r)
		if len(all) > f.redirects || r.Outcome != fetchurl.Redirected {
			return all, nil
		}
		if u, err = r.Target(); err != nil {
			return all, nil // the crawl would not follow it either
		}
	}
}

// open returns what fetches: the running crawl, or a run of this process that does nothing else.
func (f *flags) open(ctx context.Context, messages io.Writer, c *access.Crawl) (fetcher, func() error, error) {
	client, err := c.Dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	if client != nil {
		return func(ctx context.Context, u weburl.URL) (r *fetchurl.FetchedURL, err error) {
			body := struct {
				URL string `json:"url"`
			}{u.String()}
			return r, client.Command(ctx, "POST", "/fetch", body, &r)
		}, client.Close, nil
	}
	if c.InCluster() {
		return nil, nil, console.Exit(console.ExitProblem, fmt.Errorf("no node with an API runs in %s: a host of a "+
			"cluster is requested from by the node that has it", c.DataDir))
	}
	return f.openCrawl(ctx, messages, c.Config)
}

// openCrawl opens the crawl for fetches alone.
func (f *flags) openCrawl(ctx context.Context, messages io.Writer, c *config.Config) (fetcher, func() error, error) {
	c.Log.Level = "error"
	e, err := f.Open(ctx, c, messages, func(o *crawl.Options) {
		o.OnlyVisits, o.KeepSeeds, o.ExitWhenDone, o.Recrawl = true, true, false, nil
		o.Taken = hasCrawls(c.DataDir) // another crawl of the process before may have requested from any host
	})
	if err != nil {
		return nil, nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	var failed error
	go func() {
		_, failed = e.Run(running, nil)
		close(ended)
	}()
	fetch := func(ctx context.Context, u weburl.URL) (*fetchurl.FetchedURL, error) {
		select {
		case <-e.Ready():
		case <-ended:
			return nil, crawl.ErrNotRunning
		}
		return fetchurl.Once(ctx, e, u, f.wait)
	}
	return fetch, func() error {
		stop()
		<-ended
		return errors.Join(failed, e.Close())
	}, nil
}

// hasCrawls reports whether the process before had several crawls.
func hasCrawls(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, crawl.CrawlsDir))
	return err == nil
}
