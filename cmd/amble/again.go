package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/engine/sweep"
	"github.com/amble-crawler/amble/storage"
)

// fetchAgain puts the URLs back into their queues whose last response is older than age. If it is interrupted, the next
// run goes on with it.
func fetchAgain(ctx context.Context, c *config.Config, age time.Duration) error {
	if c.InCluster() || c.URLFrontier.Listen != "" {
		return console.Usagef("--again-after is for a crawl of one machine that ends: remove cluster and urlfrontier")
	}
	c.Crawl.ExitWhenDone = true
	options, err := c.CrawlOptions(programVersion())
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	r, err := crawl.OpenRetrier(options)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the first run
	}
	if err != nil {
		return access.MakeError(ctx, c, err)
	}
	old := sweep.Selection{
		States: storage.In(storage.Fetched, storage.Redirected, storage.Failed), Before: time.Now().Add(-age),
	}
	_, err = r.Retry(ctx, old, func(sweep.Retried) error { return ctx.Err() })
	if err = errors.Join(err, r.Close()); err != nil {
		return console.Exit(console.ExitProblem, fmt.Errorf("put back what is due: %w", err))
	}
	return nil
}
