package crawl

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/extract"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/requestlog"
	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/internal/spool"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/storage"
)

// Options say what to crawl and how. They do not change while the engine lives.
type Options struct {
	DataDir       string
	Workers       int           // requests in flight, all hosts together
	MaxRate       float64       // requests a second, pages and robots.txt files of all hosts together; 0: no limit
	Bandwidth     int64         // bytes a second received, see fetch.Client.SetBandwidth; 0: no limit
	ExitWhenDone  bool          // false: stay up when there is nothing to do
	GiveUpAfter   time.Duration // hosts that cannot be asked by then are postponed
	ShutdownGrace time.Duration // for requests in flight when asked to stop
	MaxPages      uint64        // pages fetched in all; 0: no limit
	MinFree       uint64        // bytes that are left free on the disk; with less nothing is committed

	Mode             frontier.Mode
	Include, Exclude []*regexp.Regexp

	URLs         weburl.Rules // for what is found; not for seeds, nor for targets of redirects
	Traps        frontier.TrapOptions
	SessionNames []string // parameters that carry session ids; none: they are not looked for

	NoFollow bool // leave links alone that ask for it: rel=nofollow, ugc, sponsored, and the robots directives of pages

	Renew       *revisit.Options // when pages that were fetched are asked for again; nil: never
	SimilarBits int              // of two simhashes that may differ for the pages to count as the same; 0: the bodies have to be the same

	Frontier frontier.Options
	Fetch    fetch.Options
	Extract  extract.Options
	Spool    spool.Options // Dir empty: "spool" under DataDir
	Sitemaps SitemapOptions
	Archive  archive.Options
	Requests requestlog.Options
	Storage  storage.Options

	// Now reads the clock; nil: the system's. What it returns carries the monotonic reading of this process, whatever its wall clock
	// shows: waits follow that. Any goroutine calls it.
	Now func() time.Time
	// VirtualTime says that the time is that of a bubble of testing/synctest, which timers of the
	// kernel know nothing of.
	VirtualTime bool
}

// DefaultOptions are those of a polite crawler; DataDir, Fetch.UserAgent and
// Archive.Dir are left for the caller to fill in.
func DefaultOptions() Options {
	return Options{
		Workers: 64, ExitWhenDone: true, GiveUpAfter: time.Hour, ShutdownGrace: 30 * time.Second, MinFree: 256 << 20, NoFollow: true, SimilarBits: 3,
		URLs: weburl.Rules{MaxLength: weburl.MaxLength}, Traps: frontier.DefaultTrapOptions(), SessionNames: frontier.SessionNames(),
		Frontier: frontier.DefaultOptions(), Fetch: fetch.DefaultOptions(),
		Extract: extract.DefaultOptions(), Spool: spool.DefaultOptions(), Sitemaps: DefaultSitemapOptions(), Archive: archive.DefaultOptions(), Requests: requestlog.DefaultOptions(),
		Storage: storage.Options{MaxQueries: 2000, MaxSameDigest: 200},
	}
}

// Validate says what is wrong with the options, all of it.
func (o Options) Validate() error {
	var errs []error
	if o.DataDir == "" {
		errs = append(errs, errors.New("crawl: DataDir is empty"))
	}
	if o.Workers < 1 {
		errs = append(errs, fmt.Errorf("crawl: Workers is %d, should be at least 1", o.Workers))
	}
	if o.Bandwidth < 0 {
		errs = append(errs, fmt.Errorf("crawl: Bandwidth is %d, should be 0 (no limit) or more", o.Bandwidth))
	}
	errs = append(errs, validateMaxRate(o.MaxRate))
	if o.GiveUpAfter < 0 || o.ShutdownGrace < 0 {
		errs = append(errs, errors.New("crawl: GiveUpAfter and ShutdownGrace may not be negative"))
	}
	if o.Renew != nil {
		errs = append(errs, o.Renew.Validate())
	}
	if o.SimilarBits < 0 || o.SimilarBits > 64 {
		errs = append(errs, fmt.Errorf("crawl: SimilarBits is %d, should be 0 to 64", o.SimilarBits))
	}
	errs = append(errs, o.Frontier.Validate(), o.Fetch.Validate(), o.Extract.Validate(), o.Sitemaps.Lists.Validate(), o.Archive.Validate(), o.Requests.Validate())
	return errors.Join(errs...)
}
