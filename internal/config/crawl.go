package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/rules/networks"
	"github.com/amble-crawler/amble/internal/rules/seeds"
)

// CrawlOptions returns the options of internal/engine/crawl and of all packages below it. version is that
// of the program. It returns no error for a Config from Load, which has checked everything.
func (c *Config) CrawlOptions(version string) (crawl.Options, error) {
	mode, inMode := seeds.ParseMode(c.Scope.Mode)
	include, inInclude := compiled("scope.include", c.Scope.Include)
	exclude, inExclude := compiled("scope.exclude", c.Scope.Exclude)
	recrawl, inRecrawl := c.RecrawlOptions()
	rules, inRules := pageRules(c.Extract.Rules)
	optOuts, inOptOuts := c.OptOuts()
	policy, inPolicy := c.ConsentPolicy()
	delivery, inDelivery := networks.Load(c.DataDir)
	err := errors.Join(inMode, inInclude, inExclude, inRecrawl, inRules, inOptOuts, inPolicy, inDelivery)
	if err != nil {
		return crawl.Options{}, err
	}
	o, _ := c.options()
	o.Version, o.DataDir, o.Consent, o.OptOuts, o.Recrawl = version, c.DataDir, policy, optOuts, recrawl
	o.Mode, o.Include, o.Exclude = mode, include, exclude
	o.URLs.StripParameters, o.Traps.Expensive = append([]string(nil), c.URLs.StripParameters...), c.expensive()
	o.SessionNames, o.Storage.MaxBytes = c.sessionNames(), int(min(int64(c.Storage.MaxSize), math.MaxInt))
	o.Sitemaps = c.SitemapOptions()
	o.Frontier, o.Fetch, o.Archive = c.FrontierOptions(), c.FetchOptions(version), c.ArchiveOptions(version)
	o.Extract.Rules = rules
	o.Frontier.Deliver = delivery.Has
	c.URLFrontier.serve(&o)
	return o, nil
}

// FrontierOptions returns the options of frontier. The frontier itself bounds its memory.
func (c *Config) FrontierOptions() frontier.Options {
	all, _ := c.options()
	o := all.Frontier
	o.Politeness = c.PolitenessOptions()
	o.Overrides, o.Ranges, o.Groups = c.overrides(), c.ranges(), c.groups()
	o.Robots, o.Tokens = c.RobotsOptions(), c.ProductTokens()
	return o
}

// expensive returns what is done about expensive endpoints. Load has checked the word.
func (c *Config) expensive() expensive.Mode {
	mode, _ := expensive.ParseMode(c.Traps.Expensive)
	return mode
}

// sessionNames returns the parameters that carry a session id, or none if the check is off.
func (c *Config) sessionNames() []string {
	if !c.Traps.SessionIDs {
		return nil
	}
	return append(frontier.SessionNames(), c.Traps.SessionNames...)
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
	StripParameters  []string `mapstructure:"strip_parameters" is:"agreed"`
	SortQuery        bool     `mapstructure:"sort_query" is:"agreed"`
	DropEmptyQuery   bool     `mapstructure:"drop_empty_query" is:"agreed"`
	CollapseSlashes  bool     `mapstructure:"collapse_slashes" is:"agreed"`
	NormalizeEscapes bool     `mapstructure:"normalize_escapes" is:"agreed"`
	MaxLength        int      `mapstructure:"max_length" range:"64..2048" is:"agreed"`
}

// urls checks the section.
func (k *checker) urls() {
	for i, name := range k.c.URLs.StripParameters {
		if !isParameter(name) {
			k.rejectItem("urls.strip_parameters", i, name, "want the name of a parameter of a URL, such as gclid, "+
				"or a prefix and a star, such as utm_*")
		}
	}
}
