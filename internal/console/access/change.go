//go:build !core

package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/service/server"
	"github.com/amble-crawler/amble/storage"
)

// Retrier puts URLs back into the queues.
type Retrier interface {
	Retry(context.Context, server.Retry, sweep.Selection, func(sweep.Retried) error) (sweep.Retried, error)
	io.Closer
}

// Retrier opens the retrier; a dry one only counts the URLs.
func (c *Crawl) Retrier(ctx context.Context, dry bool) (Retrier, error) {
	running := func(client *server.Client) Retrier { return runningRetrier{client} }
	if dry {
		return openStore(ctx, c, running, func(store *storage.Store) (Retrier, error) {
			set := sync.OnceValue(func() *seeds.Set { return c.scope(store).Seeds() })
			return storedCounter{store, set}, nil
		})
	}
	return open(ctx, c, running, func() (Retrier, error) {
		options, err := c.CrawlOptions(c.Version)
		if err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
		r, err := crawl.OpenRetrier(options, c.seeds())
		if err != nil {
			return nil, DatabaseError(ctx, c.Config, err)
		}
		return storedRetrier{r}, nil
	})
}

type runningRetrier struct{ *server.Client }

// Retry implements Retrier.
func (r runningRetrier) Retry(ctx context.Context, q server.Retry, _ sweep.Selection,
	each func(sweep.Retried) error) (sweep.Retried, error) {
	return r.Client.Retry(ctx, q, each)
}

type storedRetrier struct{ *crawl.Retrier }

// Retry implements Retrier.
func (r storedRetrier) Retry(ctx context.Context, _ server.Retry, s sweep.Selection,
	each func(sweep.Retried) error) (sweep.Retried, error) {
	return r.Retrier.Retry(ctx, s, each)
}

type storedCounter struct {
	*storage.Store
	seeds func() *seeds.Set
}

// Retry implements Retrier.
func (r storedCounter) Retry(ctx context.Context, _ server.Retry, s sweep.Selection,
	each func(sweep.Retried) error) (sweep.Retried, error) {
	return sweep.Count(ctx, r.Store, s, r.seeds, each)
}

// OptOutKeeper records opt-outs.
type OptOutKeeper interface {
	AddOptOut(context.Context, optout.Entry) error
	RemoveOptOut(ctx context.Context, scope optout.Scope, value string) error
	io.Closer
}

// OptOutKeeper opens the keeper. It creates the database if there is none.
func (c *Crawl) OptOutKeeper(ctx context.Context) (OptOutKeeper, error) {
	return open(ctx, c, func(client *server.Client) OptOutKeeper { return client }, func() (OptOutKeeper, error) {
		options, err := c.CrawlOptions(c.Version)
		if err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
		k, err := crawl.OpenOptOuts(options)
		if err != nil {
			return nil, MakeError(ctx, c.Config, err)
		}
		return k, nil
	})
}

// OptOuts returns the opt-outs of the running crawl, or of the database and the settings.
func (c *Crawl) OptOuts(ctx context.Context) ([]crawl.OptOut, error) {
	var list []crawl.OptOut
	from, err := openStore(ctx, c, func(client *server.Client) io.Closer { return client },
		func(store *storage.Store) (io.Closer, error) {
			options, err := c.CrawlOptions(c.Version)
			if err != nil {
				return nil, console.Exit(console.ExitUsage, err)
			}
			list, err = crawl.StoredOptOuts(store, options)
			return store, err
		})
	if err != nil {
		return nil, err
	}
	if client, running := from.(*server.Client); running {
		list, err = client.OptOuts(ctx)
	}
	return list, errors.Join(err, from.Close())
}

// Adder adds URLs.
type Adder interface {
	Add(crawl.Addition) error
	Finish() error // when it returns nil, all that was added is on disk
	Sum() crawl.Added
	io.Closer
}

// Adder opens the adder, and creates the database if there is none. again puts known URLs back. stopped says that
// a running crawl cannot take the URLs. waits is called when it adds nothing at the moment.
func (c *Crawl) Adder(ctx context.Context, again, stopped bool, waits func(reason string)) (Adder, error) {
	client, err := c.Dial(ctx)
	switch {
	case err != nil:
		return nil, err
	case client != nil && stopped:
		err := fmt.Errorf("a crawl runs in %s: stop it, import the list, and start it again", c.DataDir)
		return nil, console.Exit(console.ExitInUse, errors.Join(err, client.Close()))
	case client != nil:
		return runningAdder{client.Send(ctx, again, waits), client}, nil
	}
	options, err := c.CrawlOptions(c.Version)
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	i, err := crawl.OpenImporter(options, c.seeds())
	if err != nil {
		return nil, MakeError(ctx, c.Config, err)
	}
	return storedAdder{i.NewImport(crawl.ImportOptions{}), ctx, i}, nil
}

// runningAdder is a running crawl.
type runningAdder struct {
	*server.Upload
	client *server.Client
}

// Close implements Adder.
func (a runningAdder) Close() error { return a.client.Close() }

// storedAdder is the database of a crawl that does not run.
type storedAdder struct {
	crawl.Import
	ctx      context.Context
	importer *crawl.Importer
}

// Add implements Adder.
func (a storedAdder) Add(u crawl.Addition) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if a.Full() {
		if err := a.Commit(a.ctx); err != nil {
			return err
		}
	}
	return a.Import.Add(u)
}

// Finish implements Adder.
func (a storedAdder) Finish() error { return a.Commit(a.ctx) }

// Close implements Adder.
func (a storedAdder) Close() error { return errors.Join(a.Import.Close(), a.importer.Close()) }

// SeedKeeper changes seeds.
type SeedKeeper interface {
	ChangeSeeds(context.Context, crawl.SeedWish) (crawl.SeedCounts, error)
	io.Closer
}

// SeedKeeper opens the keeper. It creates the database if there is none.
func (c *Crawl) SeedKeeper(ctx context.Context) (SeedKeeper, error) {
	return open(ctx, c, func(client *server.Client) SeedKeeper { return client }, func() (SeedKeeper, error) {
		options, err := c.CrawlOptions(c.Version)
		if err != nil {
			return nil, console.Exit(console.ExitUsage, err)
		}
		k, err := crawl.OpenSeeds(options)
		if err != nil {
			return nil, MakeError(ctx, c.Config, err)
		}
		return k, nil
	})
}

// Seeds returns the seeds of the running crawl, or of the database.
func (c *Crawl) Seeds(ctx context.Context) (list []server.SeedEntry, err error) {
	from, err := openStore(ctx, c, func(client *server.Client) io.Closer { return client },
		func(store *storage.Store) (io.Closer, error) {
			all, err := crawl.StoredSeeds(store)
			for i := range all {
				list = append(list, server.NewSeedEntry(&all[i]))
			}
			return store, err
		})
	if err != nil {
		return nil, err
	}
	if client, running := from.(*server.Client); running {
		list, err = client.Seeds(ctx)
	}
	return list, errors.Join(err, from.Close())
}
