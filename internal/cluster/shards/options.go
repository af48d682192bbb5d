package shards

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// settings returns what all nodes have to agree on, by the keys of the config where there is one: what decides
// which URLs a crawl has, whether they may be fetched, what a commit does with them, and when the crawl is over.
// The pace of requests, what is consented to, and the output are those of each node, and may be changed from
// one to the next.
func (o *Options) settings() map[string]string {
	c := &o.Crawl
	settings := map[string]string{
		"scope.mode":           fmt.Sprint(c.Mode),
		"scope.include":        sum(texts(c.Include)...),
		"scope.exclude":        sum(texts(c.Exclude)...),
		"the rules of URLs":    sum(append(slices.Clone(c.SessionNames), fmt.Sprintf("%+v %+v", c.URLs, c.Traps))...),
		"the limits of URLs":   fmt.Sprint(c.Storage.MaxHostURLs, c.Storage.MaxQueries, c.Storage.MaxSameDigest),
		"recrawl.similar_bits": fmt.Sprint(c.SimilarBits),
	}
	maps.Copy(settings, endSettings(c))
	maps.Copy(settings, pageSettings(c))
	if r := c.Recrawl; r != nil {
		rules := []string{fmt.Sprint(r.Missing)}
		for _, rule := range append(slices.Clone(r.Rules), r.Rule) {
			rules = append(rules, fmt.Sprint(rule.Hosts, rule.Pattern, rule.Policy, rule.Interval, rule.Min, rule.Max))
		}
		settings["recrawl"], settings["recrawl.budget"] = sum(rules...), fmt.Sprint(r.Budget)
	}
	return settings
}

// endSettings are those that decide when the crawl, or that of a host or a URL, is over.
func endSettings(c *crawl.Options) map[string]string {
	f := &c.Frontier
	settings := map[string]string{
		"crawl.exit_when_done": fmt.Sprint(c.ExitWhenDone),
		"crawl.max_pages":      fmt.Sprint(c.MaxPages),
		"crawl.max_depth":      fmt.Sprint(f.MaxDepth),
		"limits.host_pages":    fmt.Sprint(f.HostBudget),
		"limits.domain_pages":  fmt.Sprint(f.DomainBudget),
		"retry.max_attempts":   fmt.Sprint(f.MaxAttempts),
	}
	if c.ExitWhenDone {
		settings["crawl.give_up_after"] = c.GiveUpAfter.String()
	}
	return settings
}

// pageSettings are those that decide what may be fetched, and which URLs are found in it.
func pageSettings(c *crawl.Options) map[string]string {
	return map[string]string{
		"robots.product_token":    strings.Join(c.Frontier.Tokens, ", "), // and fallback_tokens
		"robots.obey":             fmt.Sprint(c.Frontier.Obey),
		"robots.forbidden_denies": fmt.Sprint(c.Frontier.Robots.ForbiddenDenies),
		"robots.obey_nofollow":    fmt.Sprint(c.NoFollow),
		"fetch.max_redirects":     fmt.Sprint(c.Frontier.MaxRedirects),
		"fetch.content_types":     sum(c.Fetch.ContentTypes...),
		"fetch.max_body":          fmt.Sprint(c.Fetch.MaxBody),
		"extract.media":           fmt.Sprint(c.Extract.Media),
		"extract.forms":           fmt.Sprint(c.Extract.Forms),
		"extract.max_links":       fmt.Sprint(c.Extract.MaxLinks),
		"extract.max_depth":       fmt.Sprint(c.Extract.MaxDepth),
		"sitemaps":                fmt.Sprintf("%+v", c.Sitemaps),
	}
}

func texts(patterns []*regexp.Regexp) (all []string) {
	for _, p := range patterns {
		all = append(all, p.String())
	}
	return all
}

// sum is short and differs for different texts.
func sum(texts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(h[:8])
}
