//go:build !core

package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Options are those of a node.
type Options struct {
	// Crawl are the options of the DEFAULT crawl. Others have the same, with directories of their own,
	// and run until they are closed.
	Crawl crawl.Options
	// Seeds are those of the DEFAULT crawl.
	Seeds []crawl.Seed
	// Idle is after how long without use and without work a crawl is closed.
	Idle time.Duration
	// MaxCrawls is the most crawls that there may be besides the DEFAULT crawl; 0: it is the only one,
	// and others on the disk stay closed. MaxOpen is how many of them may be open at a time. Each takes
	// about 100 KiB and CrawlDescriptors.
	MaxCrawls, MaxOpen int
}

// MaxOpen is how many crawls besides DEFAULT may be open at a time by default.
const MaxOpen = 200

// CrawlDescriptors is how many files an open crawl besides DEFAULT has open, at most.
const CrawlDescriptors = 10

// DefaultOptions returns the options of a node, with those of its crawls.
func DefaultOptions(o crawl.Options) Options {
	return Options{Crawl: o, Idle: 10 * time.Minute, MaxCrawls: 10_000, MaxOpen: MaxOpen}
}

// Validate says what is wrong with the options, except for those of the crawl.
func (o *Options) Validate() error {
	var errs []error
	if o.Idle <= 0 {
		errs = append(errs, fmt.Errorf("node: Idle is %v, should be more than 0", o.Idle))
	}
	if o.MaxCrawls < 0 || o.MaxOpen < 1 {
		errs = append(errs, fmt.Errorf("node: MaxCrawls is %d and MaxOpen %d, should be 0 and 1 at least",
			o.MaxCrawls, o.MaxOpen))
	}
	return errors.Join(errs...)
}
