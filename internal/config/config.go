// Package config turns the settings of a crawl into the Options of each package.
//
// A setting has a name such as politeness.delay and may be set in four places, in order of
// increasing strength: the defaults, a YAML file, the environment (AMBLE_POLITENESS_DELAY=2s) and
// --set flags (politeness.delay=2s). viper merges them; only this package uses viper. The file is
// read through YAML nodes, so that every problem is reported with its line, and all of them at
// once.
//
// The shipped config.yaml is the reference of all settings. A test keeps it equal to Default.
package config

import (
	"net/mail"
	"path/filepath"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/robots"
)

// Config holds every setting of a crawl. The mapstructure tags are the names used in the file. A
// Config returned by Load is complete and checked, its paths are absolute or relative to the
// working directory, and any number of goroutines may read it.
type Config struct {
	DataDir     string      `mapstructure:"data_dir"` // the database and, by default, the output
	Crawl       Crawl       `mapstructure:"crawl"`
	Scope       Scope       `mapstructure:"scope"`
	Limits      Limits      `mapstructure:"limits"`
	URLs        URLs        `mapstructure:"urls"`
	Traps       Traps       `mapstructure:"traps"`
	Robots      Robots      `mapstructure:"robots"`
	Politeness  Politeness  `mapstructure:"politeness"`
	Fetch       Fetch       `mapstructure:"fetch"`
	Identity    Identity    `mapstructure:"identity"`
	Extract     Extract     `mapstructure:"extract"`
	Sitemaps    Sitemaps    `mapstructure:"sitemaps"`
	Retry       Retry       `mapstructure:"retry"`
	Recrawl     Recrawl     `mapstructure:"recrawl"`
	Consent     Consent     `mapstructure:"consent"`
	Storage     Storage     `mapstructure:"storage"`
	Output      Output      `mapstructure:"output"`
	Audit       Audit       `mapstructure:"audit"`
	Server      Server      `mapstructure:"server"`
	URLFrontier URLFrontier `mapstructure:"urlfrontier"`
	Cluster     Cluster     `mapstructure:"cluster"`
	Log         Log         `mapstructure:"log"`

	file    string            // the file read; empty: none
	origins map[string]origin // source of each setting that is not a default
}

// Crawl says where a crawl starts, how wide it is and when it ends.
type Crawl struct {
	Seeds []string `mapstructure:"seeds"` // URLs as written; see Seeds
	// one URL a line, with an optional priority; empty: none
	SeedsFile    string  `mapstructure:"seeds_file"`
	Workers      int     `mapstructure:"workers"`        // requests in flight, all hosts together
	MaxRate      float64 `mapstructure:"max_rate"`       // requests a second, all hosts together; 0: no limit
	ExitWhenDone bool    `mapstructure:"exit_when_done"` // false: stay up as a daemon
	// hosts that cannot be fetched from by then are postponed
	GiveUpAfter   time.Duration `mapstructure:"give_up_after"`
	ShutdownGrace time.Duration `mapstructure:"shutdown_grace"` // for requests in flight at shutdown
	MaxPages      int64         `mapstructure:"max_pages"`      // 0: no limit
	MaxDepth      int           `mapstructure:"max_depth"`      // links from a seed; 0: no limit
}

// Scope says which of the discovered URLs are fetched.
type Scope struct {
	Mode    string   `mapstructure:"mode"`    // host, domain, prefix or any
	Include []string `mapstructure:"include"` // regular expressions; empty: everything in the mode
	Exclude []string `mapstructure:"exclude"` // regular expressions; stronger than Include
}

// Limits bound how much is fetched from one host or domain, over all runs. 0: no limit.
type Limits struct {
	HostURLs    int `mapstructure:"host_urls"`    // URLs kept of a host
	HostPages   int `mapstructure:"host_pages"`   // pages fetched of a host
	DomainPages int `mapstructure:"domain_pages"` // pages fetched of all hosts of a registrable domain
	Session     int `mapstructure:"session"`      // requests in a row to a host while others wait for room
}

// Traps say which URLs are refused as a part of a site that goes on for ever. 0 or false: the check
// is off.
type Traps struct {
	PathDepth        int    `mapstructure:"path_depth"`        // segments of a path
	RepeatedSegments int    `mapstructure:"repeated_segments"` // times that a run of segments may repeat
	QueryParameters  int    `mapstructure:"query_parameters"`  // parameters of a query
	QueriesPerPath   int    `mapstructure:"queries_per_path"`  // different queries of one path
	SameDigest       int    `mapstructure:"same_digest"`       // pages of a host with the same content
	Calendar         bool   `mapstructure:"calendar"`          // dates far from today
	Refresh          bool   `mapstructure:"refresh"`           // a refresh to the path of its page with another query
	MazePages        int    `mapstructure:"maze_pages"`        // pages that make a part of a host suspected
	Expensive        string `mapstructure:"expensive"`         // expensive endpoints: skip, last or crawl
	DomainHosts      int    `mapstructure:"domain_hosts"`      // hosts of a registrable domain, with scope.mode any
	SessionIDs       bool   `mapstructure:"session_ids"`       // URLs that differ only in a session id are the same
	// parameters with a session id, besides the well-known ones
	SessionNames []string `mapstructure:"session_names"`
}

// Robots says under which names robots.txt is read, and what applies.
type Robots struct {
	ProductToken string `mapstructure:"product_token"` // RFC 9309 section 2.2.1
	// further names, each for files without a group for those before it
	FallbackTokens []string `mapstructure:"fallback_tokens"`
	Obey           bool     `mapstructure:"obey"`          // false: only the Crawl-delay is honoured
	ObeyNoFollow   bool     `mapstructure:"obey_nofollow"` // false: links are followed despite nofollow
	// a robots.txt that answers 401 or 403 disallows everything
	ForbiddenDenies bool `mapstructure:"forbidden_denies"`
}

// Retry says how often, and how soon, a failed request is tried again.
type Retry struct {
	MaxAttempts int           `mapstructure:"max_attempts"` // the first one included
	Delay       time.Duration `mapstructure:"delay"`        // before the second attempt at a URL; doubles with each
}

// Storage bounds the database on disk.
type Storage struct {
	MaxSize ByteSize `mapstructure:"max_size"` // of the database; 0: no limit
	MinFree ByteSize `mapstructure:"min_free"` // left free on the disk; 0: nothing
	// BackupEvery is how old the second copy of the database may be; 0: there is none.
	BackupEvery time.Duration `mapstructure:"backup_every"`
}

// Output says what is written for each page, and where.
type Output struct {
	Dir            string        `mapstructure:"dir"`             // as written; see Config.OutputDir
	Format         []string      `mapstructure:"format"`          // jsonl, warc, links, text; or none
	Compress       string        `mapstructure:"compress"`        // of files of lines: none, gzip or zstd
	WARC           string        `mapstructure:"warc_compress"`   // of WARC records: gzip or zstd
	MaxFile        ByteSize      `mapstructure:"max_file"`        // of a file, which is closed then
	MaxAge         time.Duration `mapstructure:"max_age"`         // of a file; 0: no limit
	Prefix         string        `mapstructure:"prefix"`          // of the names of WARC files
	GzipLevel      int           `mapstructure:"gzip_level"`      // of WARC records with gzip
	ZstdLevel      int           `mapstructure:"zstd_level"`      // of WARC records with zstd
	ZstdDictionary string        `mapstructure:"zstd_dictionary"` // file; empty: none
	// write WARC metadata records with the links of a page
	Outlinks bool `mapstructure:"outlinks"`
}

// Server configures the API and the dashboard.
type Server struct {
	Listen string `mapstructure:"listen"` // host:port; empty: no API
	// of clients; required unless Listen is a loopback address
	Token     string `mapstructure:"token"`
	ReadToken string `mapstructure:"read_token"` // of clients that may only read; empty: there are none
	// of fetchers, which may only work on leases; empty: there are none
	FetchToken     string   `mapstructure:"fetch_token"`
	Hosts          []string `mapstructure:"hosts"`            // names that lead here, besides those of loopback
	TLSCert        string   `mapstructure:"tls_cert"`         // file of the certificate chain, PEM; empty: no TLS
	TLSKey         string   `mapstructure:"tls_key"`          // file of its key, PEM
	BehindTLSProxy bool     `mapstructure:"behind_tls_proxy"` // something in front does TLS
	Pprof          bool     `mapstructure:"pprof"`            // profiles at /debug/pprof/
}

// Log says how much is logged, and in which form.
type Log struct {
	Level  string `mapstructure:"level"`  // debug, info, warn or error
	Format string `mapstructure:"format"` // text or json
}

// Default returns the default settings: those of the packages that they go to, where they have one.
func Default() Config {
	o := crawl.DefaultOptions()
	f := &o.Frontier
	return Config{
		DataDir: "./data",
		Crawl: Crawl{
			Seeds: []string{}, Workers: o.Workers, MaxRate: o.MaxRate, ExitWhenDone: o.ExitWhenDone,
			GiveUpAfter: o.GiveUpAfter, ShutdownGrace: o.ShutdownGrace, MaxPages: int64(o.MaxPages),
			MaxDepth: int(f.MaxDepth),
		},
		Scope: Scope{Mode: "host", Include: []string{}, Exclude: []string{}},
		Limits: Limits{
			HostURLs: o.Storage.MaxHostURLs, HostPages: int(f.HostBudget), DomainPages: int(f.DomainBudget),
			Session: f.Session,
		},
		URLs: URLs{StripParameters: []string{}, MaxLength: o.URLs.MaxLength},
		Traps: Traps{
			PathDepth: o.Traps.PathDepth, RepeatedSegments: o.Traps.RepeatedSegments,
			QueryParameters: o.Traps.QueryParameters, QueriesPerPath: o.Storage.MaxQueries,
			SameDigest: o.Storage.MaxSameDigest, Calendar: o.Traps.Calendar, Refresh: o.Traps.Refresh,
			MazePages:   o.Traps.MazePages,
			Expensive:   o.Traps.Expensive.String(),
			DomainHosts: o.MaxDomainHosts,
			SessionIDs:  len(o.SessionNames) > 0, SessionNames: []string{},
		},
		Robots: Robots{
			ProductToken: f.Tokens[0], FallbackTokens: []string{}, Obey: f.Obey, ObeyNoFollow: o.NoFollow,
			ForbiddenDenies: f.Robots.ForbiddenDenies,
		},
		Politeness: defaultPoliteness(f),
		Fetch:      defaultFetch(&o),
		Identity:   defaultIdentity(),
		Extract: Extract{
			Media: o.Extract.Media, Forms: o.Extract.Forms, MaxLinks: o.Extract.MaxLinks,
			MaxDepth: o.Extract.MaxDepth, Rules: []ExtractRule{},
		},
		Sitemaps: Sitemaps{
			Follow: o.Sitemaps.Follow, Guess: o.Sitemaps.Guess, Feeds: o.Sitemaps.Feeds,
			MaxFiles: f.MaxSitemaps, MaxURLs: o.Sitemaps.Lists.MaxItems, MaxSize: ByteSize(o.Sitemaps.Lists.MaxBytes),
		},
		Retry:   Retry{MaxAttempts: int(f.MaxAttempts), Delay: f.RetryDelay},
		Recrawl: defaultRecrawl(&o),
		Consent: Consent{Policy: []string{}},
		Storage: Storage{MaxSize: ByteSize(o.Storage.MaxBytes), MinFree: ByteSize(o.MinFree)},
		Output: Output{
			Format: o.Archive.Formats, Compress: o.Archive.Compress, MaxFile: ByteSize(o.Archive.MaxFileBytes),
			MaxAge: o.Archive.MaxFileAge, Prefix: o.Archive.Prefix, WARC: o.Archive.Records.Format,
			GzipLevel: o.Archive.Records.Level, ZstdLevel: 1, Outlinks: o.Archive.Outlinks,
		},
		Audit:       Audit{MaxSize: ByteSize(o.Requests.MaxSize), Keep: o.Requests.Keep},
		Server:      Server{Listen: "127.0.0.1:8377", Hosts: []string{}},
		URLFrontier: defaultURLFrontier(),
		Cluster:     defaultCluster(),
		Log:         Log{Level: "info", Format: "text"},
	}
}

// File returns the path of the file that was read, or "" if none was.
func (c *Config) File() string { return c.file }

// OutputDir returns the directory of the output.
func (c *Config) OutputDir() string {
	if c.Output.Dir == "" {
		return filepath.Join(c.DataDir, "output")
	}
	return c.Output.Dir
}

// resolvePaths makes relative paths relative to the directory of the config file.
func (c *Config) resolvePaths() {
	if c.file == "" {
		return
	}
	dir := filepath.Dir(c.file)
	for _, path := range []*string{&c.DataDir, &c.Crawl.SeedsFile, &c.Output.Dir, &c.Output.ZstdDictionary,
		&c.Fetch.TLSCAFile, &c.Consent.OptOut,
		&c.Identity.TLSCert, &c.Identity.TLSKey,
		&c.Server.TLSCert, &c.Server.TLSKey, &c.URLFrontier.TLSCert, &c.URLFrontier.TLSKey,
		&c.Cluster.Credentials, &c.Cluster.TLSCA, &c.Cluster.TLSCert, &c.Cluster.TLSKey, &c.Cluster.Embed.Directory} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

// UserAgent returns the User-Agent header: fetch.user_agent, or else the product token, the version
// and the bot page or the contact, such as "amble/1.0 (+https://example.org/crawler)".
func (c *Config) UserAgent(version string) string {
	if c.Fetch.UserAgent != "" {
		return c.Fetch.UserAgent
	}
	agent := c.Robots.ProductToken + "/" + version
	switch {
	case c.Identity.URL != "":
		agent += " (+" + c.Identity.URL + "/)"
	case c.Fetch.Contact != "":
		agent += " (+" + c.Fetch.Contact + ")"
	}
	return agent
}

// mailAddress returns the contact if it is a mail address without a name or a scheme, else "".
func (c *Config) mailAddress() string {
	address, err := mail.ParseAddress(strings.TrimPrefix(c.Fetch.Contact, "mailto:"))
	if err != nil {
		return ""
	}
	return address.Address
}

// ProductTokens returns the names to look for in robots.txt: the first that a file has a group for
// counts.
func (c *Config) ProductTokens() []string {
	return append([]string{c.Robots.ProductToken}, c.Robots.FallbackTokens...)
}

// RobotsOptions returns the options of robots. The lifetimes are those of RFC 9309; no setting
// changes them.
func (c *Config) RobotsOptions() robots.Options {
	o := robots.DefaultOptions()
	o.ForbiddenDenies = c.Robots.ForbiddenDenies
	return o
}
