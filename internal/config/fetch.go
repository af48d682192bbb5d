package config

import (
	"time"

	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/spool"
)

// Fetch bounds a single request, and what all of them take together.
type Fetch struct {
	UserAgent    string        `mapstructure:"user_agent"` // empty: see Config.UserAgent
	Contact      string        `mapstructure:"contact"`    // URL or mail address for site operators
	Timeout      time.Duration `mapstructure:"timeout"`    // whole request, body included
	MaxBody      ByteSize      `mapstructure:"max_body"`   // decoded bytes kept of a body
	SpoolAbove   ByteSize      `mapstructure:"spool_above"`
	MemoryBudget ByteSize      `mapstructure:"memory_budget"` // for all bodies together
	MaxRedirects int           `mapstructure:"max_redirects"`
	AllowPrivate bool          `mapstructure:"allow_private"` // true: may reach loopback and private addresses
	Resolver     string        `mapstructure:"resolver"`      // host:port of a DNS server; empty: the system's
}

func defaultFetch() Fetch {
	return Fetch{
		Timeout:      30 * time.Second,
		MaxBody:      10 * MiB,
		SpoolAbove:   1 * MiB,
		MemoryBudget: 64 * MiB,
		MaxRedirects: 5,
	}
}

// fetch checks the numbers of the section.
func (k *checker) fetch() {
	f := k.c.Fetch
	between(k, "fetch.timeout", f.Timeout, time.Millisecond, time.Hour)
	between(k, "fetch.max_body", f.MaxBody, 1*KiB, 1*GiB)
	between(k, "fetch.spool_above", f.SpoolAbove, spool.HeadBytes, 1*GiB)
	between(k, "fetch.memory_budget", f.MemoryBudget, 1*MiB, 1*TiB)
	between(k, "fetch.max_redirects", f.MaxRedirects, 0, 50)
}

// fetchTexts checks the texts of the section.
func (k *checker) fetchTexts() {
	f := k.c.Fetch
	if !isHeaderText(f.UserAgent) {
		k.reject("fetch.user_agent", "want at most 256 printable ASCII characters on one line")
	}
	if f.Contact != "" && !isContact(f.Contact) {
		k.reject("fetch.contact", "want a URL such as https://example.org/crawler or a mail address such as crawler@example.org")
	}
	if f.Resolver != "" && !isResolver(f.Resolver) {
		k.reject("fetch.resolver", "want the IP address and port of a DNS server, such as 9.9.9.9:53 or [2620:fe::fe]:53")
	}
}

// FetchOptions are the options of internal/fetch. version is that of the program.
func (c *Config) FetchOptions(version string) fetch.Options {
	o := fetch.DefaultOptions()
	o.UserAgent = c.UserAgent(version)
	o.From = c.mailAddress()
	o.Timeout = c.Fetch.Timeout
	o.MaxBody = int64(c.Fetch.MaxBody)
	o.AllowPrivate = c.Fetch.AllowPrivate
	o.Resolver = c.Fetch.Resolver
	o.MaxIdleConns = max(o.MaxIdleConns, c.Crawl.Workers)
	return o
}

// SpoolOptions are the options of internal/spool. Where its files go is left to the engine.
func (c *Config) SpoolOptions() spool.Options {
	return spool.Options{Above: int64(c.Fetch.SpoolAbove), Budget: int64(c.Fetch.MemoryBudget)}
}
