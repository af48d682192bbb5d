package crawl

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/requestlog"
	"github.com/amble-crawler/amble/internal/output/archive"
	"github.com/amble-crawler/amble/internal/output/formats"
	"github.com/amble-crawler/amble/internal/rules/consent"
	"github.com/amble-crawler/amble/internal/rules/expensive"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/system/boot"
	"github.com/amble-crawler/amble/internal/web/extract"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/spool"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/storage"
)

// Options say what to crawl and how. They do not change while the engine lives.
type Options struct {
	// Version is that of the program. URLs at which another version crashed are fetched again.
	Version string
	DataDir string
	Changeable
	CheckOutside bool          // links that leave the scope are checked, and not followed
	MaxBytes     uint64        // bytes of bodies received over all runs; 0: no limit
	MaxTime      time.Duration // of a run; 0: no limit
	MinFree      uint64        // bytes that are left free on the disk; with less nothing is committed
	BackupEvery  time.Duration // a second copy of the database is made below DataDir; 0: never
	// Paused says whether a run begins paused. nil: if the one before was, and nobody has resumed it.
	Paused *bool

	Mode frontier.Mode
	// KeepSeeds: seeds of the settings of an earlier run stay that this run does not name: some could not be read.
	KeepSeeds bool
	// OnlyVisits: the run fetches no URL of the crawl, and adds none. It is for Visit alone.
	OnlyVisits bool
	// Older is a time: URLs that were fetched, redirected or given up before it are fetched again. Zero: none.
	Older    time.Time
	TDMFiles bool // TDM files are read, also if Consent does not depend on them
	Terms    bool // so are terms of Really Simple Licensing

	URLs  weburl.Rules // for discoveries; not for seeds, nor for targets of redirects
	Traps frontier.TrapOptions
	// MaxDomainHosts is how many hosts of a registrable domain links may lead to, with ModeAny; 0: any number.
	MaxDomainHosts int
	SessionNames   []string // parameters that carry session ids; none: they are not looked for

	// IgnoreRobots is for crawls whose remote fetchers decide everything, as the clients of
	// URLFrontier do: no robots.txt is fetched and none counts, no name is looked up, and a fetcher
	// gets as many URLs of a host at a time as it wants. It keeps the delay between their requests;
	// the crawl keeps it between what it hands out of a host. Requests are not logged. Workers has
	// to be 0.
	IgnoreRobots bool

	// NoFollow ignores links whose authors say so: rel=nofollow, ugc, sponsored, and the robots
	// directives of pages.
	NoFollow bool

	Recrawl *recrawl.Options // when pages are recrawled; nil: never
	// SimilarBits is how many bits of two simhashes may differ for the pages to count as the same;
	// 0: the bodies have to be the same.
	SimilarBits int

	Frontier frontier.Options
	Fetch    fetch.Options
	Extract  extract.Options
	Spool    spool.Options // Dir empty: "spool" under DataDir
	Sitemaps SitemapOptions
	// Requisites are fetched for the archive.
	Requisites RequisiteOptions
	Archive    archive.Options
	Requests   requestlog.Options
	Storage    storage.Options

	// Journal is the log of the shard of a cluster that the engine crawls; nil: the engine is the
	// whole crawl, on one machine.
	Journal Journal
	// Cluster is what the engine needs of the other shards; nil: there are none.
	Cluster Cluster
	// Pages is how many pages the shard may fetch; nil: as many as MaxPages says.
	Pages Pages
	// RecrawlBudget returns the recrawls a day that the shard may make now, of those of all shards; 0: none.
	// It does not block. nil: as many as Recrawl says.
	RecrawlBudget func() float64
	// Permits say whether requests may be made; nil: they may at any time.
	Permits Permits
	// Taken says that another process, or an earlier run with another data directory, may have made
	// requests to the hosts of this crawl until now: each of them has a restart hold.
	Taken bool

	// Shared is what the engine shares with others of this process; nil: it makes its own.
	Shared *Shared
	// Several says that there may be others, if the engine makes its own, and Earlier that there
	// may have been some in earlier processes.
	Several, Earlier bool

	// Now reads the clock; nil: the system's. What it returns carries the monotonic reading of this
	// process, whatever its wall clock shows: waits follow that. Any goroutine calls it.
	Now func() time.Time

	// Uptime reads the clock and, at the same moment, the one that runs since the start of the machine,
	// by which requests of different processes are compared; 0: there is none. nil: the system's.
	Uptime func() (now time.Time, uptime time.Duration)
}

// SitemapOptions say which lists of URLs are read.
type SitemapOptions = work.SitemapOptions

// RequisiteOptions say what is fetched of what pages are made of.
type RequisiteOptions = work.RequisiteOptions

// DefaultOptions returns the options of an empty configuration. It guesses no sitemaps. The caller
// sets DataDir, Fetch.UserAgent and Archive.Dir.
func DefaultOptions() Options {
	return Options{
		Changeable: Changeable{Workers: 64, ExitWhenDone: true, GiveUpAfter: time.Hour,
			ShutdownGrace: 30 * time.Second, Consent: consent.DefaultPolicy()},
		MinFree: 256 << 20, NoFollow: true, SimilarBits: 3,
		URLs: weburl.Rules{MaxLength: weburl.MaxLength},
		Traps: frontier.TrapOptions{
			PathDepth: 25, RepeatedSegments: 3, QueryParameters: 20, Calendar: true, Refresh: true,
			MazePages: 40, Expensive: expensive.Skip,
		},
		MaxDomainHosts: 10_000,
		SessionNames:   frontier.SessionNames(),
		Frontier:       frontier.DefaultOptions(), Fetch: fetch.DefaultOptions(),
		Extract: extract.DefaultOptions(), Spool: spool.DefaultOptions(),
		Sitemaps: SitemapOptions{Follow: true, Feeds: true, Lists: extract.DefaultListOptions()},
		Archive:  defaultArchive(), Requests: requestlog.DefaultOptions(),
		Storage:    storage.Options{MaxQueries: 2000, MaxSameDigest: 200},
		Requisites: RequisiteOptions{PerPage: 200, Find: formats.Requisites},
	}
}

// defaultArchive returns the options of the output, with all formats that the program has.
func defaultArchive() archive.Options {
	o := archive.DefaultOptions()
	o.Known = formats.All()
	return o
}

// Validate says what is wrong with the options, all of it.
func (o Options) Validate() error {
	var errs []error
	if o.DataDir == "" {
		errs = append(errs, errors.New("crawl: DataDir is empty"))
	}
	if o.Workers < 0 {
		errs = append(errs, fmt.Errorf("crawl: Workers is %d, should not be negative", o.Workers))
	}
	if o.IgnoreRobots && o.Workers != 0 {
		errs = append(errs, fmt.Errorf("crawl: Workers is %d, should be 0 with IgnoreRobots: only remote fetchers may "+
			"ignore robots.txt", o.Workers))
	}
	if o.Bandwidth < 0 {
		errs = append(errs, fmt.Errorf("crawl: Bandwidth is %d, should be 0 (no limit) or more", o.Bandwidth))
	}
	if !(o.MaxRate >= 0) || math.IsInf(o.MaxRate, 0) {
		errs = append(errs, fmt.Errorf("crawl: MaxRate is %g, should be 0 (no limit) or more", o.MaxRate))
	}
	if o.GiveUpAfter < 0 || o.ShutdownGrace < 0 {
		errs = append(errs, errors.New("crawl: GiveUpAfter and ShutdownGrace may not be negative"))
	}
	if o.Recrawl != nil {
		errs = append(errs, o.Recrawl.Validate())
	}
	if o.SimilarBits < 0 || o.SimilarBits > 64 {
		errs = append(errs, fmt.Errorf("crawl: SimilarBits is %d, should be 0 to 64", o.SimilarBits))
	}
	errs = append(errs, o.Frontier.Validate(), o.Fetch.Validate(), o.Extract.Validate(),
		o.Sitemaps.Lists.Validate(), o.Archive.Validate(), o.Requests.Validate(), o.Requisites.Validate())
	return errors.Join(errs...)
}

// fill sets what has a default that depends on other options.
func (o *Options) fill() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Uptime == nil {
		o.Uptime = boot.Clock
	}
	if o.IgnoreRobots {
		o.Frontier.NoRobots, o.Frontier.NoLookups, o.Frontier.Batches = true, true, true
	}
	if o.Frontier.Jitter == nil {
		o.Frontier.Jitter = rand.Float64
	}
	if o.Spool.Dir == "" {
		o.Spool.Dir = filepath.Join(o.DataDir, "spool")
	}
	o.Fetch.Capture = o.capturesExchanges()
	o.Extract = o.Extraction()
}

// Extraction returns Extract with the texts that the output needs.
func (o *Options) Extraction() extract.Options {
	e := o.Extract
	needs := o.Archive.Needs()
	e.Text = e.Text || needs.Text
	e.LinkText = e.LinkText || needs.LinkTexts
	return e
}

// capturesExchanges reports whether requests and responses are kept as they are.
func (o *Options) capturesExchanges() bool { return o.Archive.Needs().Exchange }

// ownDescriptors is how many files and connections a crawl has open besides those of its workers:
// the database, the ledger, the output and its indexes, the request log, the API and its clients,
// lookups of names, standard streams.
const ownDescriptors = 64

// Descriptors returns how many files and connections a crawl may have open. least is what it cannot
// do without: a connection and a file for each worker. full is the most that it takes, with all
// that a worker may spool, and with the connections kept between requests.
func (o *Options) Descriptors() (least, full int) {
	return ownDescriptors + 2*o.Workers, ownDescriptors + 5*o.Workers + o.Fetch.MaxIdleConns
}

// Changeable are the options of the engine itself that may change while a crawl runs.
type Changeable struct {
	Workers          int           // requests in flight, all hosts together; 0: remote fetchers fetch the pages
	MaxRate          float64       // requests a second, pages and robots.txt files of all hosts together; 0: no limit
	Bandwidth        int64         // bytes a second received, see fetch.Client.SetBandwidth; 0: no limit
	ExitWhenDone     bool          // false: stay up when there is nothing to do
	GiveUpAfter      time.Duration // hosts that may not be fetched from by then are postponed
	ShutdownGrace    time.Duration // for requests in flight when the crawl is stopped
	MaxPages         uint64        // pages fetched in all; 0: no limit
	Include, Exclude []*regexp.Regexp
	OptOuts          []optout.Entry // of the settings; nothing that they cover is fetched
	Consent          consent.Policy // what is done about pages whose use is refused
}

// Live are all options that may change while a crawl runs.
type Live struct {
	Changeable
	frontier.Live
}

// Live returns those of the options that may change.
func (o Options) Live() Live { return Live{o.Changeable, o.Frontier.Live} }

// With returns o with the live options replaced by l.
func (o Options) With(l Live) Options {
	o.Changeable, o.Frontier.Live = l.Changeable, l.Live
	return o
}

// inForce are the live options as they are now, and what follows from them. It is immutable.
type inForce struct {
	Live
	politeness func(host string) *politeness.Options
	group      func(host string) string // by its name alone
}

func newInForce(o *Options, l Live) *inForce {
	return &inForce{Live: l, politeness: o.With(l).Frontier.HostPoliteness(),
		group: frontier.FindGroup(o.Frontier.Groups)}
}

// limitBandwidth puts the limits of the bytes that are received in force.
func (f *inForce) limitBandwidth(s *Shared) {
	limited := func(o frontier.Override) bool { return o.Politeness.Bandwidth > 0 }
	var ofHost func(string) int64
	if f.Politeness.Bandwidth > 0 || slices.ContainsFunc(f.Overrides, limited) {
		ofHost = func(host string) int64 { return f.politeness(host).Bandwidth }
	}
	s.quota.SetBandwidth(f.Bandwidth, ofHost)
}
