//go:build !core

package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/service/server"
)

const controlLong = `Control the running crawl in data_dir over its API. When the command ends, the change has
been made. A pause, and changes to a host, are on disk and survive restarts.

Exit code 0: done. 1: no crawl is running there, or it does not know the host. 2: wrong usage or settings, or
the crawl does not accept the token.`

func newControlCommand(settings *Program) *cobra.Command {
	c := &controlling{settings: settings}
	return console.Group("control", "Control the running crawl", controlLong,
		c.pause(), c.resume(),
		c.crawlCommand("drain", "End the crawl when all is done", "Add no more URLs from outside, crawl everything\n"+
			"that is known and the links found there, and end then. amble control resume undoes it."),
		c.crawlCommand("stop", "End the crawl now", "Shut the crawl down as SIGTERM does: requests in flight have\n"+
			"crawl.shutdown_grace to end, and everything is committed."),
		c.delay(),
		c.forget(),
		c.drop(), c.deletion(), c.set(), c.reload(),
		c.fetcherCommand("cut-off", http.MethodDelete, " is cut off", "Cut a fetcher off",
			"Refuse all requests and reports of a fetcher "+
				"from now on.\nIts leases run out at their deadlines, since its requests may still be under way."),
		c.fetcherCommand("admit", http.MethodPost, " is admitted", "Admit a fetcher that is cut off",
			"Undo amble control cut-off."),
	)
}

// controlling submits commands to the running crawl.
type controlling struct{ settings *Program }

// submit sends one command.
func (c *controlling) submit(ctx context.Context, method, path string, body, to any) error {
	crawl, err := c.settings.Crawl()
	if err != nil {
		return err
	}
	client, err := crawl.Running(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(client.Command(ctx, method, path, body, to), client.Close())
	switch {
	case errors.Is(err, inspect.ErrUnknown):
		return unknown(err)
	case err != nil:
		return console.Exit(console.ExitProblem, err)
	}
	return nil
}

func (c *controlling) post(ctx context.Context, path string, body, to any) error {
	return c.submit(ctx, http.MethodPost, path, body, to)
}

// crawl submits a command for the crawl, and prints its new state.
func (c *controlling) crawl(command *cobra.Command, name string) error {
	var now struct{ State string }
	if err := c.post(command.Context(), "/crawl/"+name, nil, &now); err != nil {
		return err
	}
	_, err := fmt.Fprintln(command.OutOrStdout(), "the crawl is "+now.State)
	return err
}

func (c *controlling) crawlCommand(name, short, long string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Long: long, Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.crawl(command, name) }}
}

// host submits a command for a host, and prints what has been done: HOST, and text.
func (c *controlling) host(command *cobra.Command, host, name string, body any, text string) error {
	if err := c.post(command.Context(), "/hosts/"+url.PathEscape(host)+"/"+name, body, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintln(command.OutOrStdout(), inspect.CanonicalHost(host)+text)
	return err
}

func (c *controlling) forget() *cobra.Command {
	return &cobra.Command{
		Use: "forget HOST", Short: "Forget what was learned about a host", Args: console.Exactly(1, "HOST"),
		Long: "Drop the backoff and the errors of a host, and fetch its robots.txt again. " +
			"Its restart hold stays.",
		ValidArgsFunction: c.settings.CompleteHostArgument(),
		RunE: func(command *cobra.Command, hosts []string) error {
			return c.host(command, hosts[0], "forget", nil, ": backoff and errors are forgotten")
		},
	}
}

func (c *controlling) fetcherCommand(name, method, done, short, long string) *cobra.Command {
	return &cobra.Command{Use: name + " FETCHER", Short: short, Long: long, Args: console.Exactly(1, "FETCHER"),
		RunE: func(command *cobra.Command, names []string) error {
			path := "/fetchers/" + url.PathEscape(names[0])
			if err := c.submit(command.Context(), method, path, nil, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintln(command.OutOrStdout(), names[0]+done)
			return err
		}}
}

func (c *controlling) pause() *cobra.Command {
	var length time.Duration
	command := &cobra.Command{
		Use: "pause [HOST]", Short: "Pause the crawl or a host",
		Long:              "Begin no request, or none to one host, until it is resumed. Requests in flight may end.",
		Example:           "  amble control pause\n  amble control pause www.example.com --for 2h",
		ValidArgsFunction: c.settings.CompleteHostArgument(),
		Args:              console.AtMostOne("host"),
		RunE: func(command *cobra.Command, hosts []string) error {
			switch {
			case length < 0:
				return console.Usagef("--for is %s, want a positive duration", length)
			case len(hosts) == 0 && length > 0:
				return console.Usagef("--for needs a host; the whole crawl is paused until it is resumed")
			case len(hosts) == 0:
				return c.crawl(command, "pause")
			case length == 0:
				return c.host(command, hosts[0], "pause", nil, " is paused until it is resumed")
			}
			return c.host(command, hosts[0], "pause", map[string]float64{"seconds": length.Seconds()},
				" is paused for "+length.String())
		},
	}
	command.Flags().DurationVar(&length, "for", 0, "duration of the pause, such as 2h")
	return command
}

func (c *controlling) resume() *cobra.Command {
	return &cobra.Command{
		Use: "resume [HOST]", Short: "Resume the crawl or a host",
		Long:              "End a pause or a drain of the crawl, or the pause of one host.",
		ValidArgsFunction: c.settings.CompleteHostArgument(),
		Args:              console.AtMostOne("host"),
		RunE: func(command *cobra.Command, hosts []string) error {
			if len(hosts) == 0 {
				return c.crawl(command, "resume")
			}
			return c.host(command, hosts[0], "resume", nil, " is not paused")
		},
	}
}

func (c *controlling) delay() *cobra.Command {
	return &cobra.Command{
		Use: "delay HOST TIME", Short: "Set the delay between requests to a host",
		Long: "Set the delay between two requests to a host, in place of politeness.delay; 0s removes it.\n" +
			"A longer delay that the host demands stays in force.",
		Example:           "  amble control delay www.example.com 30s",
		ValidArgsFunction: c.settings.CompleteHostArgument(),
		Args:              console.Exactly(2, "HOST TIME"),
		RunE: func(command *cobra.Command, args []string) error {
			d, err := time.ParseDuration(args[1])
			if err != nil || d < 0 {
				return console.Usagef("%q is not a delay; want a duration with its unit, such as 30s", args[1])
			}
			text := ": " + d.String() + " between requests, or longer if the host demands it"
			if d == 0 {
				text = ": politeness.delay between requests, or longer if the host demands it"
			}
			return c.host(command, args[0], "delay", map[string]float64{"seconds": d.Seconds()}, text)
		},
	}
}

func (c *controlling) drop() *cobra.Command {
	return &cobra.Command{
		Use: "drop HOST", Short: "Drop the queue of a host",
		ValidArgsFunction: c.settings.CompleteHostArgument(),
		Long: "Exclude all URLs of a host that wait now, in the background. They stay known, with that\n" +
			"reason. URLs found later are queued as usual.",
		Args: console.Exactly(1, "HOST"),
		RunE: func(command *cobra.Command, hosts []string) error {
			var done struct{ Dropped int }
			if err := c.post(command.Context(), "/hosts/"+url.PathEscape(hosts[0])+"/drop", nil, &done); err != nil {
				return err
			}
			_, err := fmt.Fprintf(command.OutOrStdout(), "%s to be excluded\n", console.Plural(done.Dropped, "URL"))
			return err
		},
	}
}

func (c *controlling) deletion() *cobra.Command {
	var age time.Duration
	all := false
	command := &cobra.Command{
		Use: "delete [HOST]", Short: "Delete URLs",
		Long: "Delete URLs of one host or of all, whatever their state. They are new when they are found\n" +
			"again. What is known of their hosts stays, and so does the output; amble erase removes these too.\n" +
			"A deletion that takes longer than 20 seconds goes on in the background, also after a restart.",
		Example: "  amble control delete www.example.com\n" +
			"  amble control delete --all --older 2160h\n" +
			"  amble control delete --all",
		ValidArgsFunction: c.settings.CompleteHostArgument(),
		Args:              console.AtMostOne("host"),
		RunE: func(command *cobra.Command, hosts []string) error {
			body := make(map[string]any)
			switch {
			case age < 0:
				return console.Usagef("--older is %s, want a positive duration", age)
			case all == (len(hosts) > 0):
				return console.Usagef("either name a host, or use --all for all hosts")
			case all:
				body["all"] = true
			default:
				body["host"] = hosts[0]
			}
			if age > 0 {
				body["before"] = time.Now().Add(-age)
			}
			var done struct {
				Deleted int
				Done    bool
			}
			if err := c.post(command.Context(), "/urls/delete", body, &done); err != nil {
				return err
			}
			text := console.Plural(done.Deleted, "URL") + " deleted"
			if !done.Done {
				text = "the deletion goes on in the background"
			}
			_, err := fmt.Fprintln(command.OutOrStdout(), text)
			return err
		},
	}
	command.Flags().DurationVar(&age, "older", 0, "only URLs that were discovered longer ago than this, such as 720h")
	command.Flags().BoolVar(&all, "all", false, "URLs of all hosts")
	return command
}

func (c *controlling) set() *cobra.Command {
	return &cobra.Command{
		Use: "set KEY=VALUE...", Short: "Change settings of the running crawl",
		Long: "Change settings of the running crawl. If one of them is wrong or cannot change, none is changed.\n" +
			"They hold until the crawl ends, or amble control reload --undo. These can change:\n" +
			wrapped(config.LiveKeys(), 100) + ".",
		Example: "  amble control set crawl.workers=128 politeness.delay=2s\n" +
			"  amble control set 'scope.exclude=[\"\\\\.pdf$\"]'",
		ValidArgsFunction: access.CompleteLiveSetting,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usagef("name the settings, such as crawl.workers=128")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			patch, err := config.PatchOf(args)
			if err != nil {
				return err
			}
			return c.changed(command, http.MethodPatch, "/config", patch)
		},
	}
}

func (c *controlling) reload() *cobra.Command {
	undo := false
	command := &cobra.Command{
		Use: "reload", Short: "Let the running crawl read its config file and seeds again",
		Long: "Let the running crawl read its config file, crawl.seeds and crawl.seeds_file again, as SIGHUP does.\n" +
			"If a setting is wrong or cannot change, nothing is changed. Seeds that the settings do not name any\n" +
			"more are removed, those of amble seed add stay. What amble control set has changed stays, and is\n" +
			"listed.",
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			path := "/config/reload"
			if undo {
				path += "?undo=true"
			}
			return c.changed(command, http.MethodPost, path, nil)
		},
	}
	command.Flags().BoolVar(&undo, "undo", false, "undo amble control set")
	return command
}

// changed sends settings and prints what has changed.
func (c *controlling) changed(command *cobra.Command, method, path string, body any) error {
	var done server.SettingsChange
	if err := c.submit(command.Context(), method, path, body, &done); err != nil {
		return err
	}
	for _, text := range done.BadSeeds {
		command.PrintErrln("bad seed:", text)
	}
	_, err := fmt.Fprintln(command.OutOrStdout(), strings.Join(access.ReloadText(&done), "\n"))
	return err
}
