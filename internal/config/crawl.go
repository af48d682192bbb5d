package config

import (
	"fmt"
	"math"
	"regexp"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/expensive"
	"github.com/amble-crawler/amble/internal/networks"
	"github.com/amble-crawler/amble/internal/seeds"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// CrawlOptions returns the options of internal/crawl and of all packages below it. version is that
// of the program. It returns no error for a Config from Load, which has checked everything.
func (c *Config) CrawlOptions(version string) (crawl.Options, error) {
	mode, err := seeds.ParseMode(c.Scope.Mode)
	if err != nil {
		return crawl.Options{}, err
	}
	include, err := compiled("scope.include", c.Scope.Include)
	if err != nil {
		return crawl.Options{}, err
	}
	exclude, err := compiled("scope.exclude", c.Scope.Exclude)
	if err != nil {
		return crawl.Options{}, err
	}
	recrawl, err := c.RecrawlOptions()
	if err != nil {
		return crawl.Options{}, err
	}
	extraction, err := c.ExtractOptions()
	if err != nil {
		return crawl.Options{}, err
	}
	optOuts, err := c.OptOuts()
	if err != nil {
		return crawl.Options{}, err
	}
	policy, err := c.ConsentPolicy()
	if err != nil {
		return crawl.Options{}, err
	}
	delivery, err := networks.Load(c.DataDir)
	if err != nil {
		return crawl.Options{}, err
	}
	o := crawl.Options{
		Version:        version,
		Consent:        policy,
		TDMFiles:       c.Consent.TDMRep,
		OptOuts:        optOuts,
		Recrawl:        recrawl,
		SimilarBits:    c.Recrawl.SimilarBits,
		MinFree:        uint64(c.Storage.MinFree),
		BackupEvery:    c.Storage.BackupEvery,
		URLs:           c.URLRules(),
		Traps:          c.TrapOptions(),
		MaxDomainHosts: c.Traps.DomainHosts,
		SessionNames:   c.sessionNames(),
		Storage:        c.StorageOptions(),
		DataDir:        c.DataDir,
		Workers:        c.Crawl.Workers,
		MaxRate:        c.Crawl.MaxRate,
		Bandwidth:      int64(c.Fetch.Bandwidth),
		ExitWhenDone:   c.Crawl.ExitWhenDone,
		GiveUpAfter:    c.Crawl.GiveUpAfter,
		ShutdownGrace:  c.Crawl.ShutdownGrace,
		MaxPages:       uint64(c.Crawl.MaxPages),
		Mode:           mode,
		Include:        include,
		Exclude:        exclude,
		Frontier:       c.FrontierOptions(),
		Fetch:          c.FetchOptions(version),
		Extract:        extraction,
		Sitemaps:       c.SitemapOptions(),
		NoFollow:       c.Robots.ObeyNoFollow,
		Spool:          c.SpoolOptions(),
		Archive:        c.ArchiveOptions(version),
		Requests:       c.RequestLogOptions(),
	}
	o.Frontier.Deliver = delivery.Has
	c.URLFrontier.serve(&o)
	return o, nil
}

// FrontierOptions returns the options of frontier. The frontier itself bounds its memory.
func (c *Config) FrontierOptions() frontier.Options {
	o := frontier.DefaultOptions()
	o.Politeness = c.PolitenessOptions()
	o.Overrides = c.overrides()
	o.Ranges = c.ranges()
	o.Groups = c.groups()
	o.Domain = politeness.LimitOptions{InFlight: c.Politeness.PerDomain, Delay: c.Politeness.DomainDelay}
	o.Robots = c.RobotsOptions()
	o.Tokens = c.ProductTokens()
	o.Obey = c.Robots.Obey
	o.Walls = c.Politeness.Walls
	o.MaxDepth = uint16(c.Crawl.MaxDepth)
	o.MaxRedirects = uint8(c.Fetch.MaxRedirects)
	o.MaxAttempts = uint8(c.Retry.MaxAttempts)
	o.RetryDelay = c.Retry.Delay
	o.HostBudget = uint32(c.Limits.HostPages)
	o.DomainBudget = uint32(c.Limits.DomainPages)
	o.MaxSitemaps = c.Sitemaps.MaxFiles
	o.Session = c.Limits.Session
	o.RecrawlShare = c.Recrawl.Share
	o.Resolvers = c.Fetch.Resolvers
	return o
}

// TrapOptions returns the checks of single URLs.
func (c *Config) TrapOptions() frontier.TrapOptions {
	t := c.Traps
	mode, _ := expensive.ParseMode(t.Expensive) // Validate has checked it
	return frontier.TrapOptions{
		PathDepth: t.PathDepth, RepeatedSegments: t.RepeatedSegments, QueryParameters: t.QueryParameters,
		Calendar: t.Calendar, Refresh: t.Refresh, MazePages: t.MazePages, Expensive: mode,
	}
}

// sessionNames returns the parameters that carry a session id, or none if the check is off.
func (c *Config) sessionNames() []string {
	if !c.Traps.SessionIDs {
		return nil
	}
	return append(frontier.SessionNames(), c.Traps.SessionNames...)
}

// StorageOptions returns the options of storage.
func (c *Config) StorageOptions() storage.Options {
	return storage.Options{
		MaxBytes:      int(min(int64(c.Storage.MaxSize), math.MaxInt)),
		MaxHostURLs:   c.Limits.HostURLs,
		MaxQueries:    c.Traps.QueriesPerPath,
		MaxSameDigest: c.Traps.SameDigest,
	}
}

func compiled(key string, patterns []string) ([]*regexp.Regexp, error) {
	var expressions []*regexp.Regexp
	for i, pattern := range patterns {
		expression, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s, item %d: %w", key, i+1, err)
		}
		expressions = append(expressions, expression)
	}
	return expressions, nil
}

// URLs says which URLs are the same beyond their canonical form.
type URLs struct {
	StripParameters  []string `mapstructure:"strip_parameters"`  // removed from queries
	SortQuery        bool     `mapstructure:"sort_query"`        // parameters in the order of their names
	DropEmptyQuery   bool     `mapstructure:"drop_empty_query"`  // no ? with nothing behind it
	CollapseSlashes  bool     `mapstructure:"collapse_slashes"`  // several slashes become one
	NormalizeEscapes bool     `mapstructure:"normalize_escapes"` // %7e is ~, %2f is %2F
	MaxLength        int      `mapstructure:"max_length"`        // in bytes
}

// urls checks the section.
func (k *checker) urls() {
	between(k, "urls.max_length", k.c.URLs.MaxLength, 64, weburl.MaxLength)
	for i, name := range k.c.URLs.StripParameters {
		if !isParameter(name) {
			k.rejectItem("urls.strip_parameters", i, name, "want the name of a parameter of a URL, such as gclid, "+
				"or a prefix and a star, such as utm_*")
		}
	}
}

// URLRules returns the rules for URLs.
func (c *Config) URLRules() weburl.Rules {
	u := c.URLs
	return weburl.Rules{
		StripParameters: append([]string(nil), u.StripParameters...), SortQuery: u.SortQuery,
		DropEmptyQuery:  u.DropEmptyQuery,
		CollapseSlashes: u.CollapseSlashes, NormalizeEscapes: u.NormalizeEscapes, MaxLength: u.MaxLength,
	}
}
