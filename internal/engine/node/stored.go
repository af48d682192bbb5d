//go:build !core

package node

import "github.com/amble-crawler/amble/internal/engine/crawl"

// Stored returns the options of the crawls besides DEFAULT that are on the disk, by their ids, given
// those of DEFAULT.
func Stored(o crawl.Options) (map[string]crawl.Options, error) {
	d := directory{o.DataDir, 1}
	ids, err := d.ids()
	stored := make(map[string]crawl.Options, len(ids))
	for _, id := range ids {
		stored[id] = d.optionsOf(id, o)
	}
	return stored, err
}
