//go:build !core

package node

import (
	"context"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Overviews returns the overviews of all crawls, in the order of IDs. It opens none.
func (n *Node) Overviews(ctx context.Context) ([]crawl.Overview, error) {
	ids, err := n.IDs(ctx)
	if err != nil {
		return nil, err
	}
	open := map[string]crawl.Overview{Default: n.main.Overview()}
	err = n.each(ctx, func(id string, e *crawl.Engine) error {
		open[id] = e.Overview()
		return nil
	})
	list := make([]crawl.Overview, len(ids))
	for i, id := range ids {
		list[i] = open[id]
		list[i].ID = id
	}
	return list, err
}

// StatusOf returns the status of a crawl, which is opened for that. The errors are those of Use.
func (n *Node) StatusOf(ctx context.Context, id string) (crawl.Status, error) {
	e, release, err := n.Use(ctx, id, false)
	if err != nil {
		return crawl.Status{}, err
	}
	defer release()
	return e.Status(), nil
}
