package config

import (
	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/extract"
)

// Extract says what is taken of a page beside its links to other pages.
type Extract struct {
	Media    bool `mapstructure:"media"`     // images, video, sound and embedded objects as links
	Forms    bool `mapstructure:"forms"`     // actions of forms with method GET as links
	MaxLinks int  `mapstructure:"max_links"` // links taken of one page
	MaxDepth int  `mapstructure:"max_depth"` // elements within each other that are looked into
}

// Sitemaps says which lists of URLs are read, and how far.
type Sitemaps struct {
	Follow  bool     `mapstructure:"follow"`   // those that a robots.txt, a link or an index names, and those that come as pages
	Guess   bool     `mapstructure:"guess"`    // ask for /sitemap.xml where robots.txt names none
	Feeds   bool     `mapstructure:"feeds"`    // RSS, Atom and JSON feeds
	MaxURLs int      `mapstructure:"max_urls"` // taken of one file
	MaxSize ByteSize `mapstructure:"max_size"` // read of one file, unpacked
}

func defaultExtract() Extract { return Extract{MaxLinks: 10_000, MaxDepth: 512} }

func defaultSitemaps() Sitemaps {
	return Sitemaps{Follow: true, Feeds: true, MaxURLs: 100_000, MaxSize: 50 * MiB}
}

// lists checks what is taken of pages, sitemaps and feeds.
func (k *checker) lists() {
	between(k, "extract.max_links", k.c.Extract.MaxLinks, 1, 1_000_000)
	between(k, "extract.max_depth", k.c.Extract.MaxDepth, 1, 512)
	between(k, "sitemaps.max_urls", k.c.Sitemaps.MaxURLs, 1, 10_000_000)
	between(k, "sitemaps.max_size", k.c.Sitemaps.MaxSize, 1*KiB, 1*GiB)
}

// ExtractOptions are the options of internal/extract.
func (c *Config) ExtractOptions() extract.Options {
	o := extract.DefaultOptions()
	o.Media, o.Forms = c.Extract.Media, c.Extract.Forms
	o.MaxLinks, o.MaxDepth = c.Extract.MaxLinks, c.Extract.MaxDepth
	return o
}

// SitemapOptions say which lists of URLs are read.
func (c *Config) SitemapOptions() crawl.SitemapOptions {
	s := c.Sitemaps
	return crawl.SitemapOptions{
		Follow: s.Follow, Guess: s.Guess, Feeds: s.Feeds,
		Lists: extract.ListOptions{MaxItems: s.MaxURLs, MaxBytes: int64(s.MaxSize), Media: c.Extract.Media},
	}
}
