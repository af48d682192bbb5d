package main

import (
	"context"
	"log/slog"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// crawls are those of this process: the one of the settings, and with several others.
type crawls interface {
	// Default returns the crawl of the settings. It is open until Close.
	Default() *crawl.Engine
	// Run runs the crawls until that of the settings ends, and returns its summary and its error.
	Run(context.Context) (crawl.Summary, error)
	// Change puts live options in force, for all crawls.
	Change(context.Context, crawl.Live) error
	Close() error
}

// several opens several crawls in place of one.
type several interface {
	// descriptors returns how many descriptors the crawls need at least and take at most, given those of one. If the
	// limit allows fewer crawls to be open than there should be, fewer says so.
	descriptors(limit, least, full int) (leastOfAll, fullOfAll int, fewer string)
	open(*crawl.Options, []crawl.Seed, *slog.Logger) (crawls, error)
}

// several returns what opens several crawls, if the settings ask a module for them; nil: nothing does.
func (k *crawling) several() several {
	for _, m := range k.modules {
		if m.several == nil {
			continue
		}
		if s := m.several(k); s != nil {
			return s
		}
	}
	return nil
}

// open opens the crawls of this process; several is nil if there is one.
func (k *crawling) open(o *crawl.Options, several several) (crawls, error) {
	if several != nil {
		return several.open(o, k.seeds, k.log)
	}
	e, err := crawl.Open(*o, k.log)
	if err != nil {
		return nil, err
	}
	return oneCrawl{e, k.seeds}, nil
}

// oneCrawl is the only crawl of a process.
type oneCrawl struct {
	*crawl.Engine
	seeds []crawl.Seed
}

// Default implements crawls.
func (c oneCrawl) Default() *crawl.Engine { return c.Engine }

// Run implements crawls.
func (c oneCrawl) Run(ctx context.Context) (crawl.Summary, error) { return c.Engine.Run(ctx, c.seeds) }
