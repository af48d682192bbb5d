package server

import (
	"context"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/inspect"
)

// The rest of a crawl that never moves: it has nothing to look at, and takes nothing.

func (standing) Observe(crawl.Observer) {}

func (standing) View() *inspect.View { return nil }

func (standing) Add(context.Context, []crawl.Addition) (crawl.Added, error) {
	return crawl.Added{}, crawl.ErrNotRunning
}
