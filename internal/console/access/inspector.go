//go:build !core

package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Inspector inspects a frontier.
type Inspector interface {
	Hosts(context.Context, inspect.HostQuery, func(*inspect.Host) error) (matching int, err error)
	Host(context.Context, string) (inspect.HostStory, error)
	// URLs begins at a position, and returns that of the next URL after the limit; empty: there is none.
	URLs(ctx context.Context, q inspect.URLQuery, from string, each func(*inspect.URL) error) (next string, err error)
	URL(context.Context, weburl.URL) (inspect.URLStory, error)
	HostNames(ctx context.Context, begin string, most int) ([]string, error)
	io.Closer
}

// Inspect calls f with an inspector.
func (c *Crawl) Inspect(ctx context.Context, f func(Inspector) error) error {
	i, err := openStore(ctx, c, func(running *server.Client) Inspector { return running }, c.stored)
	if err != nil {
		return err
	}
	if err = errors.Join(f(i), i.Close()); errors.Is(err, server.ErrNotRunning) {
		err = console.Exit(console.ExitProblem, fmt.Errorf("the crawl ended meanwhile: %w", err))
	}
	return err
}

// stored returns the inspector of a database.
func (c *Crawl) stored(store *storage.Store) (Inspector, error) {
	recrawl, err := c.RecrawlOptions()
	if err != nil {
		return nil, err
	}
	o := c.FrontierOptions()
	view := inspect.Options{
		Politeness: o.HostPoliteness(), Robots: o.Robots, Tokens: o.Tokens, Obey: o.Obey, Recrawl: recrawl,
		Group: frontier.FindGroup(o.Groups), Now: c.Now,
	}
	scope := sync.OnceValue(func() inspect.Options { return c.scope(store) }) // there may be many seeds
	view.Scope = func(u weburl.URL, head *storage.Entry) (bool, string) { return scope().Scope(u, head) }
	view.Seeds = func() *seeds.Set { return scope().Seeds() }
	view.OptOut = func(host, address string) string { return scope().OptOut(host, address) }
	return &storedInspector{inspect.New(store, view), store}, nil
}

// scope returns the scope that a crawl with these settings would have, as options of a view.
func (c *Crawl) scope(store *storage.Store) (found inspect.Options) {
	options, err := c.CrawlOptions(c.Version)
	if err == nil {
		err = crawl.StoredScope(store, options, c.seeds(), &found)
	}
	if err != nil {
		found.Seeds = func() *seeds.Set { return nil }
		found.Scope = func(weburl.URL, *storage.Entry) (bool, string) { return false, "not known: " + err.Error() }
		found.OptOut = func(string, string) string { return "not known: " + err.Error() }
	}
	return found
}

// seeds returns the seeds of the settings. amble run and config check report bad ones.
func (c *Crawl) seeds() (seeds []crawl.Seed) {
	config.VisitSeeds(c.Config, nil, func(s crawl.Seed) { seeds = append(seeds, s) }, func(config.BadSeed) {})
	return seeds
}

type storedInspector struct {
	*inspect.View
	io.Closer
}

// URLs implements Inspector.
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

// Status returns the status of the running crawl, or what the database says.
func (c *Crawl) Status(ctx context.Context) (server.CrawlStatus, error) {
	s, running, err := server.FetchStatus(ctx, c.DataDir, c.Server.Token)
	switch {
	case err == nil:
		return s, c.checkFlags()
	case errors.Is(err, server.ErrToken):
		return s,
			console.Exit(console.ExitUsage, fmt.Errorf("the running crawl, process %d, does not accept the token: %s",
				running.Process, TokenHint))
	case !errors.Is(err, server.ErrNotRunning):
		return s, console.Exit(console.ExitProblem, err)
	}
	store, err := storage.Open(c.DataDir, storage.Options{ReadOnly: true})
	if err != nil {
		return s, DatabaseError(ctx, c.Config, err)
	}
	n := store.Counters()
	s.Status = crawl.Status{
		State: "not running", At: c.Now(), URLs: n.ByName(), HostStates: map[string]int{},
		Requisites: n.RequisitesByName(),
		Hosts:      int(n.Hosts), Requests: n.Requests, Bytes: n.Bytes, DataDir: c.DataDir, OutputDir: c.OutputDir(),
		ProductToken: c.Robots.ProductToken,
	}
	return s, store.Close()
}
