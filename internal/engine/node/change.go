//go:build !core

package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Change puts live options in force, for all crawls. The errors are those of crawl.Engine.Change.
func (n *Node) Change(ctx context.Context, l crawl.Live) error {
	if err := n.main.Change(ctx, l); err != nil {
		return err
	}
	n.mu.Lock()
	n.live = l
	n.mu.Unlock()
	l.ExitWhenDone = false
	return n.each(ctx, func(id string, e *crawl.Engine) error {
		if err := e.Change(ctx, l); err != nil && !errors.Is(err, crawl.ErrNotRunning) {
			return fmt.Errorf("crawl %q: %w", id, err)
		}
		return nil
	})
}

// each calls f for each open crawl besides DEFAULT.
func (n *Node) each(ctx context.Context, f func(id string, e *crawl.Engine) error) error {
	n.mu.Lock()
	var open []*openCrawl
	for _, c := range n.crawls {
		if !c.ending {
			c.users++
			open = append(open, c)
		}
	}
	n.mu.Unlock()
	var errs []error
	for _, c := range open {
		if err := waitFor(ctx, c.ready); err != nil {
			errs = append(errs, err)
		} else if c.err == nil {
			errs = append(errs, f(c.id, c.engine))
		}
		n.release(c)
	}
	return errors.Join(errs...)
}

// waitFor waits until a channel is closed. The error is that of ctx.
func waitFor(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
