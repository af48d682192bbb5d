//go:build !core

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// SetDefaultDelay sets the delay of the hosts of all crawls, also of those that are opened later. The
// errors are those of crawl.Engine.SetDefaultDelay.
func (n *Node) SetDefaultDelay(ctx context.Context, delay time.Duration) error {
	e, release, err := n.useDefault(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := e.SetDefaultDelay(ctx, delay); err != nil {
		return err
	}
	return n.each(ctx, func(id string, e *crawl.Engine) error {
		if err := e.SetDefaultDelay(ctx, delay); err != nil && !errors.Is(err, crawl.ErrNotRunning) {
			return fmt.Errorf("crawl %q: %w", id, err)
		}
		return nil
	})
}

// Delete deletes a crawl with all that is kept of it, durably, and returns how many URLs it had. Those
// who use it get crawl.ErrNotRunning; Delete waits until they have released it. Of DEFAULT it deletes
// the URLs, as crawl.Engine.Delete does. If ctx ends before, the deletion goes on all the same. Errors
// are those of Use.
func (n *Node) Delete(ctx context.Context, id string) (urls uint64, err error) {
	if id == Default {
		e, release, err := n.Use(ctx, id, false)
		if err != nil {
			return 0, err
		}
		defer release()
		return e.Delete(ctx, crawl.Deletion{})
	}
	if err := checkID(id); err != nil {
		return 0, err
	}
	if err := waitFor(ctx, n.reopened); err != nil {
		return 0, err
	}
	c, err := n.use(ctx, id, false)
	switch {
	case err == nil:
		n.release(c)
	case ctx.Err() != nil, errors.Is(err, ErrNoCrawl), errors.Is(err, ErrTooMany), errors.Is(err, crawl.ErrNotRunning):
		return 0, err
	default:
		n.log.Warn("a crawl that cannot be opened is deleted", "crawl", id, "error", err)
	}
	return n.discard(ctx, id)
}

// discard closes and removes a crawl.
func (n *Node) discard(ctx context.Context, id string) (urls uint64, err error) {
	c, err := n.beginDiscard(id)
	if err != nil {
		return 0, err
	}
	if err := waitFor(ctx, c.closed); err != nil {
		return 0, err
	}
	if !c.removed {
		return 0, fmt.Errorf("delete crawl %q: %w", id, c.removeErr)
	}
	if c.removeErr != nil {
		n.log.Warn("a deleted crawl could not be removed from the disk; the next start tries again",
			"crawl", id, "error", c.removeErr)
	}
	return c.urls, nil
}
