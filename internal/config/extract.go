package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/engine/crawl"
	"github.com/amble-crawler/amble/internal/web/extract"
)

// Extract says what is extracted from a page besides its links to other pages.
type Extract struct {
	Media    bool `mapstructure:"media" is:"agreed"`
	Forms    bool `mapstructure:"forms" is:"agreed"`
	MaxLinks int  `mapstructure:"max_links" range:"1..1000000" is:"agreed"`
	MaxDepth int  `mapstructure:"max_depth" range:"1..512" is:"agreed"`

	Rules []ExtractRule `mapstructure:"rules" is:"agreed"`
}

// ExtractRule says what is extracted from some pages. The first rule that matches a page counts.
type ExtractRule struct {
	Hosts   []string `mapstructure:"hosts"`   // names, and patterns such as *.example.com; none: every host
	Pattern string   `mapstructure:"pattern"` // regular expression of path and query
	Links   []string `mapstructure:"links"`   // CSS selectors of elements whose links count; none: all links
	// CSS selectors of elements that are not searched for links or text
	Ignore []string          `mapstructure:"ignore"`
	Fields map[string]string `mapstructure:"fields"` // CSS selectors of values for the output, by field name
}

// maxExtractRules bounds the rules: each page is matched against them in order.
const maxExtractRules = 1000

// Sitemaps says which lists of URLs are read, and how far.
type Sitemaps struct {
	Follow   bool     `mapstructure:"follow" is:"agreed"`
	Guess    bool     `mapstructure:"guess" is:"agreed"`
	Feeds    bool     `mapstructure:"feeds" is:"agreed"`
	MaxFiles int      `mapstructure:"max_files" range:"0..65535" is:"agreed"`
	MaxURLs  int      `mapstructure:"max_urls" range:"1..10000000" is:"agreed"`
	MaxSize  ByteSize `mapstructure:"max_size" range:"1KiB..1GiB" is:"agreed"`
}

func (k *checker) extractRules() {
	const key = "extract.rules"
	if len(k.c.Extract.Rules) > maxExtractRules {
		k.conflict(key, fmt.Sprintf("want at most %d items; a pattern such as *.example.com stands for many hosts",
			maxExtractRules))
		return
	}
	for i, item := range k.c.Extract.Rules {
		reject := func(read, message string) { k.rejectItem(key, i, read, message) }
		switch {
		case len(item.Hosts) == 0 && item.Pattern == "":
			reject("item "+fmt.Sprint(i+1), "want hosts, or a pattern: a regular expression of path and query")
		case len(item.Links)+len(item.Ignore)+len(item.Fields) == 0:
			reject("item "+fmt.Sprint(i+1), "want links, ignore or fields: what to extract from the pages")
		}
		checkPatterns(item.Hosts, reject)
		_, err := item.compile()
		var wrong extract.RuleErrors
		errors.As(err, &wrong)
		for _, bad := range wrong {
			reject(bad.Text, wantedOfRule(bad))
		}
	}
}

// wantedOfRule says what is wrong with a text of a rule and what to write instead.
func wantedOfRule(bad *extract.RuleError) string {
	message := bad.Key + ": " + strings.TrimPrefix(bad.Err.Error(), "error parsing regexp: ")
	if bad.Key == "pattern" {
		return message + "; want a regular expression of Go (RE2)"
	}
	return message + "; docs/EXTRACTION.md has the selectors"
}

// compile makes a rule of internal/web/extract.
func (item *ExtractRule) compile() (*extract.Rule, error) {
	text := extract.RuleText{Pattern: item.Pattern, Links: item.Links, Ignore: item.Ignore, Fields: item.Fields}
	text.Hosts = hostPatterns(item.Hosts)
	return extract.NewRule(&text)
}

// ExtractOptions returns the options of internal/web/extract. It returns no error for a Config from
// Load.
func (c *Config) ExtractOptions() (extract.Options, error) {
	all, _ := c.options()
	o := all.Extract
	for _, item := range c.Extract.Rules {
		rule, err := item.compile()
		if err != nil {
			return o, fmt.Errorf("extract.rules: %w", err)
		}
		o.Rules = append(o.Rules, rule)
	}
	return o, nil
}

// SitemapOptions returns which lists of URLs are read.
func (c *Config) SitemapOptions() crawl.SitemapOptions {
	o, _ := c.options()
	o.Sitemaps.Lists.Media = c.Extract.Media
	return o.Sitemaps
}
