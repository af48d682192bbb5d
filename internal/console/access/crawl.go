//go:build !core

package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/storage"
)

// Crawl is the crawl of some settings.
type Crawl struct {
	*config.Config
	Version string // of the program
	Now     func() time.Time
}

// TokenHint says what to do about a token that the running crawl does not accept.
const TokenHint = "set server.token, or AMBLE_SERVER_TOKEN, to the crawl's token; if the config file was changed " +
	"since, SIGHUP makes the crawl use the new one"

// sectionsOfCrawl are the sections of the settings that say how a crawl goes, and nothing to a command that has a
// running crawl do something.
func sectionsOfCrawl() []string {
	return []string{
		"crawl", "scope", "limits", "urls", "traps", "robots", "politeness", "fetch", "identity", "extract",
		"sitemaps", "retry", "recrawl", "consent",
	}
}

// Dial finds the running crawl. It returns nil if there is none. It is an error if --set gives a setting of the crawl,
// which has others.
func (c *Crawl) Dial(ctx context.Context) (*server.Client, error) {
	client, err := server.Dial(ctx, c.DataDir, c.Server.Token)
	switch {
	case err == nil:
		if err := c.checkFlags(); err != nil {
			return nil, errors.Join(err, client.Close())
		}
		return client, nil
	case errors.Is(err, server.ErrNotRunning):
		return nil, nil
	case errors.Is(err, server.ErrToken):
		return nil,
			console.Exit(console.ExitUsage, errors.New("the running crawl does not accept the token: "+TokenHint))
	}
	return nil, console.Exit(console.ExitProblem, err)
}

// checkFlags returns an error if --set gives a setting of the crawl, which runs with others.
func (c *Crawl) checkFlags() error {
	given := c.GivenByFlag(sectionsOfCrawl()...)
	if len(given) == 0 {
		return nil
	}
	return console.Exit(console.ExitUsage, fmt.Errorf("a crawl runs in %s with settings of its own, so --set %s would "+
		"have no effect: leave it out, or stop the crawl; amble control set changes settings of a running crawl",
		c.DataDir, given[0]))
}

// Running is Dial for what only a running crawl does.
func (c *Crawl) Running(ctx context.Context) (*server.Client, error) {
	client, err := c.Dial(ctx)
	if err == nil && client == nil {
		err = console.Exit(console.ExitProblem, fmt.Errorf("no crawl is running in %s, or it has no API", c.DataDir))
	}
	return client, err
}

// open returns what running makes of the running crawl or, if there is none, what stored opens.
func open[T any](ctx context.Context, c *Crawl, running func(*server.Client) T, stored func() (T, error)) (T, error) {
	client, err := c.Dial(ctx)
	switch {
	case err != nil:
		var none T
		return none, err
	case client != nil:
		return running(client), nil
	}
	return stored()
}

// openStore is open for what needs no more than to read the database.
func openStore[T any](ctx context.Context, c *Crawl, running func(*server.Client) T,
	stored func(*storage.Store) (T, error)) (T, error) {
	return open(ctx, c, running, func() (made T, err error) {
		store, err := storage.Open(c.DataDir, storage.Options{ReadOnly: true})
		if err != nil {
			return made, DatabaseError(ctx, c.Config, err)
		}
		if made, err = stored(store); err != nil {
			err = errors.Join(err, store.Close())
		}
		return made, err
	})
}

// Source provides copies of a database.
type Source interface {
	Backup(context.Context, io.Writer) (int64, error)
	io.Closer
}

// Source returns the source of copies.
func (c *Crawl) Source(ctx context.Context) (Source, error) {
	return openStore(ctx, c, func(running *server.Client) Source { return running },
		func(store *storage.Store) (Source, error) { return storedSource{store}, nil })
}

type storedSource struct{ *storage.Store }

// Backup implements Source.
func (s storedSource) Backup(_ context.Context, w io.Writer) (int64, error) {
	return s.Store.Backup(func(int64) (io.Writer, error) { return w, nil })
}
