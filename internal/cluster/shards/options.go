//go:build !core

package shards

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/cluster/journal"
	"github.com/amble-crawler/amble/internal/cluster/natsconn"
	"github.com/amble-crawler/amble/internal/engine/crawl"
)

// Options are those of a node.
type Options struct {
	// Crawl are the options of the engines. DataDir holds the directories of all shards.
	Crawl crawl.Options
	// Seeds are those of the settings. Node.Agree makes them those of the cluster, if it has none.
	Seeds []crawl.Seed
	// Cluster are the options of the membership, with the name of the node and the number of shards.
	Cluster cluster.Options
	// Names are those of the cluster on its servers.
	Names natsconn.Names
	// Replicas is how many servers keep a copy: 1, 3 or 5.
	Replicas int
	// Timeout bounds the wait for one answer of a server.
	Timeout time.Duration
	// SnapshotEvery is how often a node looks whether snapshots are due, and SnapshotAbove how many bytes of log
	// one is worth at least.
	SnapshotEvery time.Duration
	SnapshotAbove int64
	// EndEvery is how often a node looks whether the crawl is over, if it is to end when it is.
	EndEvery time.Duration
	// KeepDatabases is for how long the database of a shard stays that another node owns.
	KeepDatabases time.Duration
	// Agreed are the settings that all nodes have to agree on, by their keys, as config.Config.Agreed has them.
	Agreed map[string]string
	// Settings are those of the process; nil: they cannot change.
	Settings Settings
	// Erase erases hosts from the directory of a shard whose engine is not open. With Directory.Names empty it ends an
	// erasure that was interrupted. Nil: hosts cannot be erased.
	Erase func(context.Context, Directory) (Erased, error)
	// Uptime is a clock that counts while the machine sleeps, and that nobody sets.
	Uptime func() time.Duration
}

// DefaultOptions returns the options of a node of a cluster with three servers. The caller sets
// Cluster.Node, Names and Uptime.
func DefaultOptions(o crawl.Options) Options {
	j := journal.DefaultOptions()
	return Options{
		Crawl: o, Cluster: cluster.DefaultOptions(), Replicas: j.Replicas, Timeout: j.Timeout,
		SnapshotEvery: time.Minute, SnapshotAbove: j.SnapshotAbove, KeepDatabases: time.Hour, EndEvery: time.Second,
	}
}

// maxGroupName bounds the name of a group, which is the key of a grant.
const maxGroupName = 512

// Validate says what is wrong with the options, all of it, except for those that membership checks.
func (o *Options) Validate() error {
	var errs []error
	refuse := func(wrong bool, why string) {
		if wrong {
			errs = append(errs, errors.New(why))
		}
	}
	c := &o.Crawl
	refuse(c.MaxPages > maxPart,
		fmt.Sprintf("crawl.max_pages is %d, should be at most %d in a cluster", c.MaxPages, uint64(maxPart)))
	refuse(c.Recrawl != nil && c.Recrawl.Budget > maxPart/perRecrawl,
		fmt.Sprintf("recrawl.budget is more than %d in a cluster: lower it", maxPart/perRecrawl))
	refuse(c.Workers == 0 || c.IgnoreRobots,
		"remote fetchers cannot be used in a cluster yet: set crawl.workers to 1 or more")
	refuse(c.Journal != nil || c.Permits != nil || c.Shared != nil,
		"shards: the node sets Journal, Permits and Shared itself")
	for _, g := range c.Frontier.Groups {
		refuse(len(g.Name) > maxGroupName,
			fmt.Sprintf("the name of group %.20q is longer than %d bytes: shorten it", g.Name, maxGroupName))
	}
	refuse(o.SnapshotEvery <= 0, fmt.Sprintf("shards: SnapshotEvery is %v, should be more than 0", o.SnapshotEvery))
	refuse(o.EndEvery <= 0, fmt.Sprintf("shards: EndEvery is %v, should be more than 0", o.EndEvery))
	refuse(o.KeepDatabases < 10, fmt.Sprintf("shards: KeepDatabases is %v, should be more than 0", o.KeepDatabases))
	j := o.journal()
	return errors.Join(append(errs, j.Validate(), c.Validate())...)
}

// journal returns the options of the logs.
func (o *Options) journal() journal.Options {
	return journal.Options{
		Prefix: o.Names.Base(), Replicas: o.Replicas, Shards: o.Cluster.Shards, Timeout: o.Timeout,
		SnapshotAbove: o.SnapshotAbove,
	}
}

// directory returns the directory of a shard.
func (o *Options) directory(s cluster.Shard) string {
	return filepath.Join(o.Crawl.DataDir, "shards", fmt.Sprintf("%05d", s))
}

// engine returns the options of the engine of a shard, without what belongs to one run of it. live are in force
// in place of those of o; nil: those of o.
func (o *Options) engine(s cluster.Shard, live *crawl.Live) crawl.Options {
	c := o.Crawl
	if live != nil {
		c = c.With(*live)
	}
	c = c.With(ofEngine(c.Live()))
	c.DataDir, c.Taken = o.directory(s), true
	c.MaxBytes, c.MaxTime = 0, 0 // the process looks after them
	c.Archive.Dir = filepath.Join(c.DataDir, "output")
	if c.Archive.Prefix != "" {
		c.Archive.Prefix = fmt.Sprintf("%s-%05d", c.Archive.Prefix, s)
	}
	if c.Spool.Dir == "" {
		c.Spool.Dir = filepath.Join(o.Crawl.DataDir, "spool") // that of the shared spool
	}
	return c
}

// ofEngine returns the live options of an engine, from those of the crawl.
func ofEngine(l crawl.Live) crawl.Live {
	l.ExitWhenDone, l.MaxPages = false, 0 // the nodes decide that together
	return l
}
