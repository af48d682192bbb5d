package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/inspect"
	"github.com/amble-crawler/amble/internal/server"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// inspector inspects a frontier: of the running crawl, over its API, or of the database.
type inspector interface {
	Hosts(context.Context, inspect.HostQuery, func(*inspect.Host) error) (matching int, err error)
	Host(context.Context, string) (inspect.HostStory, error)
	// URLs begins at a position, and returns that of the next URL after the limit; empty: there is none.
	URLs(ctx context.Context, q inspect.URLQuery, from string, each func(*inspect.URL) error) (next string, err error)
	URL(context.Context, weburl.URL) (inspect.URLStory, error)
	RecrawlPlan(ctx context.Context, hosts int) (inspect.RecrawlPlan, error)
	HostNames(ctx context.Context, begin string, most int) ([]string, error)
	io.Closer
}

// withInspector finds the running crawl, or opens the database read-only, and calls f with it.
func withInspector(ctx context.Context, settings *settingsFlags, f func(inspector) error) error {
	c, err := settings.load()
	if err != nil {
		return err
	}
	i, err := openInspector(ctx, c)
	if err != nil {
		return err
	}
	if err = errors.Join(f(i), i.Close()); errors.Is(err, server.ErrNotRunning) {
		err = console.Exit(console.ExitProblem, fmt.Errorf("the crawl ended meanwhile: %w", err))
	}
	return err
}

// openCrawl returns the running crawl or, if none is running, its database.
func openCrawl(ctx context.Context, c *config.Config) (*server.Client, *storage.Store, error) {
	client, err := dial(ctx, c)
	if client != nil || err != nil {
		return client, nil, err
	}
	store, err := storage.Open(c.DataDir, storage.Options{ReadOnly: true})
	if err != nil {
		return nil, nil, databaseError(ctx, c, err)
	}
	return nil, store, nil
}

func openInspector(ctx context.Context, c *config.Config) (inspector, error) {
	client, store, err := openCrawl(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case client != nil:
		return client, nil
	}
	recrawl, err := c.RecrawlOptions()
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	o := c.FrontierOptions()
	view := inspect.Options{
		Politeness: o.HostPoliteness(), Robots: o.Robots, Tokens: o.Tokens, Obey: o.Obey, Recrawl: recrawl,
		Group: frontier.FindGroup(o.Groups), Now: time.Now,
	}
	setStoredScope(store, c, &view)
	return &storedInspector{inspect.New(store, view), store}, nil
}

// setStoredScope puts the scope that a crawl with these settings would have into a view. It is
// computed on first use: there may be many seeds.
func setStoredScope(store *storage.Store, c *config.Config, view *inspect.Options) {
	scope := sync.OnceValue(func() (found inspect.Options) {
		var seeds []crawl.Seed
		config.VisitSeeds(c, nil, func(s crawl.Seed) { seeds = append(seeds, s) },
			func(config.BadSeed) {})
		options, err := c.CrawlOptions(programVersion())
		if err == nil {
			err = crawl.StoredScope(store, options, seeds, &found)
		}
		if err != nil {
			found.Scope = func(weburl.URL) (bool, string) { return false, "not known: " + err.Error() }
			found.OptOut = func(string, string) string { return "not known: " + err.Error() }
		}
		return found
	})
	view.Scope = func(u weburl.URL) (bool, string) { return scope().Scope(u) }
	view.OptOut = func(host, address string) string { return scope().OptOut(host, address) }
}

type storedInspector struct {
	*inspect.View
	io.Closer
}

// URLs implements inspector.
func (i *storedInspector) URLs(ctx context.Context, q inspect.URLQuery, from string, each func(*inspect.URL) error) (
	next string, err error) {
	if q.From, err = storage.ParsePosition(from); err != nil {
		return "", console.Usagef("--from: %w", err)
	}
	at, err := i.View.URLs(ctx, q, each)
	if at != nil {
		next = at.String()
	}
	return next, err
}

// tokenHint says what to do about a token that the running crawl does not accept.
const tokenHint = "set server.token, or AMBLE_SERVER_TOKEN, to the crawl's token; if the config file was changed " +
	"since, SIGHUP makes the crawl use the new one"

// dial finds the running crawl. It returns nil if there is none.
func dial(ctx context.Context, c *config.Config) (*server.Client, error) {
	client, err := server.Dial(ctx, c.DataDir, c.Server.Token)
	switch {
	case err == nil:
		return client, nil
	case errors.Is(err, server.ErrNotRunning):
		return nil, nil
	case errors.Is(err, server.ErrToken):
		return nil,
			console.Exit(console.ExitUsage, errors.New("the running crawl does not accept the token: "+tokenHint))
	}
	return nil, console.Exit(console.ExitProblem, err)
}
