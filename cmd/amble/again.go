package main

import (
	"time"

	"github.com/amble-crawler/amble/internal/console"
)

// fetchAgain makes the crawl fetch again what was fetched longer ago than age, and end.
func (k *crawling) fetchAgain(age time.Duration, now time.Time) error {
	c := k.config
	switch {
	case age < 0:
		return console.Usagef("--again-after is %v, should be 0 or more", age)
	case c.URLFrontier.Listen != "":
		return console.Usagef("--again-after is for a crawl that ends: remove urlfrontier.listen")
	case c.InCluster() && !c.Crawl.ExitWhenDone:
		return console.Usagef("--again-after is for a crawl that ends, and in a cluster all nodes agree on that: set " +
			"crawl.exit_when_done to true in the settings of all nodes")
	}
	c.Crawl.ExitWhenDone, k.again, k.older = true, age, now.Add(-age)
	return nil
}
