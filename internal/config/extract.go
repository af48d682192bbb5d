package config

import "github.com/amble-crawler/amble/internal/engine/crawl"

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

// Sitemaps says which lists of URLs are read, and how far.
type Sitemaps struct {
	Follow   bool     `mapstructure:"follow" is:"agreed"`
	Guess    bool     `mapstructure:"guess" is:"agreed"`
	Feeds    bool     `mapstructure:"feeds" is:"agreed"`
	MaxFiles int      `mapstructure:"max_files" range:"0..65535" is:"agreed"`
	MaxURLs  int      `mapstructure:"max_urls" range:"1..10000000" is:"agreed"`
	MaxSize  ByteSize `mapstructure:"max_size" range:"1KiB..1GiB" is:"agreed"`
}

// SitemapOptions returns which lists of URLs are read.
func (c *Config) SitemapOptions() crawl.SitemapOptions {
	o, _ := c.options()
	o.Sitemaps.Lists.Media = c.Extract.Media
	return o.Sitemaps
}
