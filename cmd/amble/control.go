package main

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
	"github.com/amble-crawler/amble/internal/inspect"
)

const controlLong = `Tell the running crawl in data_dir how to go on, over its API. What is said to be done is done when the command ends; what concerns
a host, and a pause, is on disk and survives restarts.

Exit code 0: done. 1: no crawl runs there, or it does not know the host. 2: wrong usage or settings, or the crawl does not accept the token.`

func newControlCommand(settings *settingsFlags) *cobra.Command {
	c := &controlling{settings: settings}
	return group("control", "Steer the running crawl", controlLong,
		c.pause(), c.resume(),
		c.crawlOrder("drain", "Let the crawl end when all is done", "Let the crawl take no more URLs from outside, go on with all that is known and what that leads to, and end then. amble control resume takes it back."),
		c.crawlOrder("stop", "Let the crawl end now", "Let the crawl end as SIGTERM does: what is under way may end within crawl.shutdown_grace, and all is committed."),
		c.delay(),
		c.hostOrder("forget", "Forget what was learned of a host", "Drop back-off and errors of a host, and ask for its robots.txt again. What is owed to the host stays."),
		c.drop(), c.set(), c.reload(),
	)
}

// controlling gives orders to a running crawl.
type controlling struct{ settings *settingsFlags }

// order sends one.
func (c *controlling) order(ctx context.Context, method, path string, body, to any) error {
	loaded, err := c.settings.load()
	if err != nil {
		return err
	}
	client, err := dial(ctx, loaded)
	if err == nil && client == nil {
		err = exit(exitProblem, fmt.Errorf("no crawl runs in %s, or it has no API", loaded.DataDir))
	}
	if err != nil {
		return err
	}
	err = errors.Join(client.Order(ctx, method, path, body, to), client.Close())
	switch {
	case errors.Is(err, inspect.ErrUnknown):
		return unknown(err)
	case err != nil:
		return exit(exitProblem, err)
	}
	return nil
}

func (c *controlling) post(ctx context.Context, path string, body, to any) error {
	return c.order(ctx, http.MethodPost, path, body, to)
}

func hostOrderPath(host, name string) string { return "/hosts/" + url.PathEscape(host) + "/" + name }

// crawl gives an order about the crawl, and says how that is now.
func (c *controlling) crawl(command *cobra.Command, name string) error {
	var now struct{ State string }
	if err := c.post(command.Context(), "/crawl/"+name, nil, &now); err != nil {
		return err
	}
	_, err := fmt.Fprintln(command.OutOrStdout(), "the crawl is "+now.State)
	return err
}

func (c *controlling) crawlOrder(name, short, long string) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Long: long, Args: noArguments, RunE: func(command *cobra.Command, _ []string) error { return c.crawl(command, name) }}
}

func (c *controlling) hostOrder(name, short, long string) *cobra.Command {
	return &cobra.Command{Use: name + " HOST", Short: short, Long: long, Args: exactly(1, "HOST"), ValidArgsFunction: completeHostArgument(c.settings), RunE: func(command *cobra.Command, hosts []string) error {
		return c.post(command.Context(), hostOrderPath(hosts[0], name), nil, nil)
	}}
}

func (c *controlling) pause() *cobra.Command {
	var length time.Duration
	command := &cobra.Command{
		Use: "pause [HOST]", Short: "Let no request begin, or none to a host",
		Long:              "Let no request begin, or none to one host, until it is resumed. A request that is under way is let finish.",
		Example:           "  amble control pause\n  amble control pause www.example.com --for 2h",
		ValidArgsFunction: completeHostArgument(c.settings),
		Args:              atMostOne("host"),
		RunE: func(command *cobra.Command, hosts []string) error {
			switch {
			case length < 0:
				return usagef("--for is %s, want a time from now on", length)
			case len(hosts) == 0 && length > 0:
				return usagef("--for is for one host; the whole crawl is paused until it is resumed")
			case len(hosts) == 0:
				return c.crawl(command, "pause")
			case length == 0:
				return c.post(command.Context(), hostOrderPath(hosts[0], "pause"), nil, nil)
			}
			return c.post(command.Context(), hostOrderPath(hosts[0], "pause"), map[string]float64{"seconds": length.Seconds()}, nil)
		},
	}
	command.Flags().DurationVar(&length, "for", 0, "only for so long, such as 2h")
	return command
}

func (c *controlling) resume() *cobra.Command {
	return &cobra.Command{
		Use: "resume [HOST]", Short: "End a pause or a drain, or the pause of a host", Long: "End a pause or a drain of the crawl, or the pause of one host.",
		ValidArgsFunction: completeHostArgument(c.settings),
		Args:              atMostOne("host"),
		RunE: func(command *cobra.Command, hosts []string) error {
			if len(hosts) == 0 {
				return c.crawl(command, "resume")
			}
			return c.post(command.Context(), hostOrderPath(hosts[0], "resume"), nil, nil)
		},
	}
}

func (c *controlling) delay() *cobra.Command {
	return &cobra.Command{
		Use: "delay HOST TIME", Short: "Set the delay between requests to a host",
		Long:              "Set the delay between two requests to a host, in place of politeness.delay; 0s lets that count again. What the host itself asks for is never undercut.",
		Example:           "  amble control delay www.example.com 30s",
		ValidArgsFunction: completeHostArgument(c.settings),
		Args:              exactly(2, "HOST TIME"),
		RunE: func(command *cobra.Command, given []string) error {
			d, err := time.ParseDuration(given[1])
			if err != nil || d < 0 {
				return usagef("%q is not a delay; want a duration with its unit, such as 30s", given[1])
			}
			return c.post(command.Context(), hostOrderPath(given[0], "delay"), map[string]float64{"seconds": d.Seconds()}, nil)
		},
	}
}

func (c *controlling) drop() *cobra.Command {
	return &cobra.Command{
		Use: "drop HOST", Short: "Drop the queue of a host",
		ValidArgsFunction: completeHostArgument(c.settings),
		Long:              "Exclude all URLs of a host that wait now, in the background. They stay known, with that reason. What is found later is queued as ever.",
		Args:              exactly(1, "HOST"),
		RunE: func(command *cobra.Command, hosts []string) error {
			var done struct{ Dropped int }
			if err := c.post(command.Context(), hostOrderPath(hosts[0], "drop"), nil, &done); err != nil {
				return err
			}
			_, err := fmt.Fprintf(command.OutOrStdout(), "%s to be excluded\n", plural(done.Dropped, "URL"))
			return err
		},
	}
}

func (c *controlling) set() *cobra.Command {
	return &cobra.Command{
		Use: "set KEY=VALUE...", Short: "Change settings of the running crawl",
		Long: "Change settings of the running crawl, all of them or, where one is wrong or cannot change, none. They hold until the crawl ends, or reads its config\n" +
			"file again. These can change:\n" + wrapped(config.LiveKeys(), 120) + ".",
		Example:           "  amble control set crawl.workers=128 politeness.delay=2s\n  amble control set 'scope.exclude=[\"\\\\.pdf$\"]'",
		ValidArgsFunction: completeLiveSetting,
		Args: func(command *cobra.Command, given []string) error {
			if len(given) == 0 {
				return usagef("name the settings, such as crawl.workers=128")
			}
			return nil
		},
		RunE: func(command *cobra.Command, given []string) error {
			patch, err := config.PatchOf(given)
			if err != nil {
				return err
			}
			return c.changed(command, http.MethodPatch, "/config", patch)
		},
	}
}

func (c *controlling) reload() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Let the running crawl read its config file again",
		Long: "Let the running crawl read its config file again, as SIGHUP does, and take back what was changed by amble control set. Where a setting is wrong or cannot change, all stays as it was.",
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.changed(command, http.MethodPost, "/config/reload", nil)
		},
	}
}

// changed sends settings and says which are different now.
func (c *controlling) changed(command *cobra.Command, method, path string, body any) error {
	var done struct{ Changed []string }
	if err := c.order(command.Context(), method, path, body, &done); err != nil {
		return err
	}
	text := "nothing is different"
	if len(done.Changed) > 0 {
		text = "changed: " + strings.Join(done.Changed, ", ")
	}
	_, err := fmt.Fprintln(command.OutOrStdout(), text)
	return err
}

// exactly is for commands that take so many arguments.
func exactly(n int, names string) cobra.PositionalArgs {
	return func(command *cobra.Command, given []string) error {
		if len(given) != n {
			return usagef("%q takes %s, and %d were given", command.CommandPath(), names, len(given))
		}
		return nil
	}
}
