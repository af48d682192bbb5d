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
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/robots"
)

// Config holds every setting of a crawl: see table.go for the tags, and config.yaml for what each means. A Config
// returned by Load is complete and checked, its paths are absolute or relative to the
// working directory, and any number of goroutines may read it.
type Config struct {
	DataDir     string      `mapstructure:"data_dir" default:"./data" is:"path"`
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
	Archive     Archive     `mapstructure:"archive"`
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
	Seeds         []string      `mapstructure:"seeds" is:"file"`
	SeedsFile     string        `mapstructure:"seeds_file" is:"file path"`
	Workers       int           `mapstructure:"workers" range:"0..4096" is:"live"`
	MaxRate       float64       `mapstructure:"max_rate" range:"0|0.001..100000" is:"live"`
	ExitWhenDone  bool          `mapstructure:"exit_when_done" is:"agreed live"`
	GiveUpAfter   time.Duration `mapstructure:"give_up_after" range:"0s..8760h" is:"agreed live"`
	ShutdownGrace time.Duration `mapstructure:"shutdown_grace" range:"0s..1h" is:"live"`
	MaxPages      int64         `mapstructure:"max_pages" range:"0..1000000000000000" is:"agreed live"`
	MaxBytes      ByteSize      `mapstructure:"max_bytes" range:"0B..1024TiB"`
	MaxTime       time.Duration `mapstructure:"max_time" range:"0s|1s..8784h"`
	MaxDepth      int           `mapstructure:"max_depth" range:"0..65535" is:"agreed"`
}

// Scope says which of the discovered URLs are fetched.
type Scope struct {
	Mode    string   `mapstructure:"mode" default:"host" of:"host domain prefix any" is:"agreed"`
	Include []string `mapstructure:"include" is:"agreed live"`
	Exclude []string `mapstructure:"exclude" is:"agreed live"`
	// CheckOutside has links that leave the scope checked, and not followed.
	CheckOutside bool `mapstructure:"check_outside" is:"agreed"`
}

// Limits bound how much is fetched from one host or domain, over all runs. 0: no limit.
type Limits struct {
	HostURLs    int `mapstructure:"host_urls" range:"0..2147483647" is:"agreed"`
	HostPages   int `mapstructure:"host_pages" range:"0..2147483647" is:"agreed live"`
	DomainPages int `mapstructure:"domain_pages" range:"0..2147483647" is:"agreed"`
	Session     int `mapstructure:"session" range:"0..1000000000"`
}

// Traps say which URLs are refused as a part of a site that goes on for ever. 0 or false: the check
// is off.
type Traps struct {
	PathDepth        int      `mapstructure:"path_depth" range:"0..2048" is:"agreed"`
	RepeatedSegments int      `mapstructure:"repeated_segments" range:"0..2048" is:"agreed"`
	QueryParameters  int      `mapstructure:"query_parameters" range:"0..2048" is:"agreed"`
	QueriesPerPath   int      `mapstructure:"queries_per_path" range:"0..2147483647" is:"agreed"`
	SameDigest       int      `mapstructure:"same_digest" range:"0..2147483647" is:"agreed"`
	Calendar         bool     `mapstructure:"calendar" is:"agreed"`
	Refresh          bool     `mapstructure:"refresh" is:"agreed"`
	MazePages        int      `mapstructure:"maze_pages" range:"0..1000000" is:"agreed"`
	Expensive        string   `mapstructure:"expensive" default:"skip" of:"skip last crawl" is:"agreed"`
	DomainHosts      int      `mapstructure:"domain_hosts" range:"0..2147483647" is:"agreed"`
	SessionIDs       bool     `mapstructure:"session_ids" default:"true" is:"agreed"`
	SessionNames     []string `mapstructure:"session_names" is:"agreed"`
}

// Robots says under which names robots.txt is read, and what applies.
type Robots struct {
	ProductToken    string   `mapstructure:"product_token" default:"amble" is:"agreed"`
	FallbackTokens  []string `mapstructure:"fallback_tokens" is:"agreed"`
	Obey            bool     `mapstructure:"obey" is:"agreed"`
	ObeyNoFollow    bool     `mapstructure:"obey_nofollow" is:"agreed"`
	ForbiddenDenies bool     `mapstructure:"forbidden_denies" is:"agreed"`
}

// Retry says how often, and how soon, a failed request is tried again.
type Retry struct {
	MaxAttempts int           `mapstructure:"max_attempts" range:"1..100" is:"agreed"`
	Delay       time.Duration `mapstructure:"delay" range:"1ms..24h"`
}

// Storage bounds the database on disk.
type Storage struct {
	MaxSize     ByteSize      `mapstructure:"max_size" range:"0|16MiB..1024TiB"`
	MinFree     ByteSize      `mapstructure:"min_free" range:"0B..1024TiB"`
	BackupEvery time.Duration `mapstructure:"backup_every" range:"0s|1m..8784h"`
}

// Output says what is written for each page, and where.
type Output struct {
	Dir            string        `mapstructure:"dir" is:"path"`
	Format         []string      `mapstructure:"format"`
	Compress       string        `mapstructure:"compress" of:"none gzip zstd"`
	WARC           string        `mapstructure:"warc_compress" of:"gzip zstd"`
	MaxFile        ByteSize      `mapstructure:"max_file" range:"64KiB..1TiB"`
	MaxAge         time.Duration `mapstructure:"max_age" range:"0s..8760h"`
	Prefix         string        `mapstructure:"prefix"`
	GzipLevel      int           `mapstructure:"gzip_level" range:"1..9"`
	ZstdLevel      int           `mapstructure:"zstd_level" range:"1..4" default:"1"`
	ZstdDictionary string        `mapstructure:"zstd_dictionary" is:"path"`
	Outlinks       bool          `mapstructure:"outlinks"`
	WACZ           bool          `mapstructure:"wacz"`

	OnComplete        string        `mapstructure:"on_complete"`
	OnCompleteTimeout time.Duration `mapstructure:"on_complete_timeout" range:"1s..168h" default:"1h"`
	Webhook           Webhook       `mapstructure:"webhook"`
}

// Archive says what is archived besides pages.
type Archive struct {
	Requisites bool `mapstructure:"requisites"`
	PerPage    int  `mapstructure:"requisites_per_page" range:"1..1000"`

	Dedupe      string        `mapstructure:"dedupe" is:"path"`
	DedupeDelay time.Duration `mapstructure:"dedupe_delay" range:"10ms..1h"`
}

// Webhook is where output.format webhook posts to.
type Webhook struct {
	URL    string   `mapstructure:"url"`
	Secret string   `mapstructure:"secret" is:"secret file"`
	Queue  ByteSize `mapstructure:"queue" range:"64MiB..1024TiB"`
}

// Server configures the API and the dashboard.
type Server struct {
	Listen         string   `mapstructure:"listen" default:"127.0.0.1:8377"`
	Token          string   `mapstructure:"token" is:"secret file"`
	ReadToken      string   `mapstructure:"read_token" is:"secret file"`
	FetchToken     string   `mapstructure:"fetch_token" is:"secret file"`
	Hosts          []string `mapstructure:"hosts"`
	TLSCert        string   `mapstructure:"tls_cert" is:"path"`
	TLSKey         string   `mapstructure:"tls_key" is:"path"`
	BehindTLSProxy bool     `mapstructure:"behind_tls_proxy"`
	Pprof          bool     `mapstructure:"pprof"`
}

// Log says how much is logged, and in which form.
type Log struct {
	Level  string `mapstructure:"level" default:"info" of:"debug info warn error" is:"live"`
	Format string `mapstructure:"format" default:"text" of:"text json"`
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

// resolvePaths makes relative paths relative to the directory of the config file. URLs stay.
func (c *Config) resolvePaths() {
	for _, s := range settings() {
		path, isPath := s.field(c), s.is("path") && c.file != ""
		if isPath && path.String() != "" && !filepath.IsAbs(path.String()) && !strings.Contains(path.String(), "://") {
			path.SetString(filepath.Join(filepath.Dir(c.file), path.String()))
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
	tokens := append([]string{c.Robots.ProductToken}, c.Robots.FallbackTokens...)
	if !slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(t, ownName) }) {
		tokens = append(tokens, ownName) // what a site says of the program holds, whatever its operator calls it
	}
	return tokens
}

// RobotsOptions returns the options of robots. The lifetimes are those of RFC 9309; no setting
// changes them.
func (c *Config) RobotsOptions() robots.Options {
	o := robots.DefaultOptions()
	o.ForbiddenDenies = c.Robots.ForbiddenDenies
	return o
}
