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
