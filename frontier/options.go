package frontier

import (
	"errors"
	"fmt"
	"time"

	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// Options configure a Frontier. They do not change while it lives.
type Options struct {
	Politeness politeness.Options
	Robots     robots.Options
	Tokens     []string // product tokens, the first that robots.txt names counts

	Overrides []Override              // for some hosts, in place of Politeness and HostBudget
	Ranges    []Range                 // addresses with limits of their own
	Domain    politeness.LimitOptions // of all hosts of a registrable domain together; zero: no limit

	Obey         bool   // false: rules are not asked; Crawl-delay is honoured all the same
	MaxDepth     uint16 // 0: no limit
	MaxRedirects uint8
	MaxAttempts  uint8         // failed attempts before a URL is given up
	RetryDelay   time.Duration // before the second attempt; doubles with each
	HostBudget   uint32        // pages fetched of a host in all, over all runs; 0: no limit
	DomainBudget uint32        // pages fetched of all hosts of a registrable domain; 0: no limit
	Session      int           // requests to a host in a row before it makes room for hosts that wait for it; 0: no limit
	Workers      int           // requests under way at most; 0: nobody knows, then all hosts are equal, quick or slow
	Resolvers    int           // names being looked up at a time
	Heads        int           // queued URLs of an origin held in memory at most
	ActiveHosts  int           // hosts active at a time
	ActiveBytes  int           // memory of heads and rules from which on hosts go dormant early
	OwedSince    time.Time     // every host owes a full delay from here; zero: none does
	Jitter       func() float64

	// Known tells the addresses of a name for which no name server has to be asked: an address
	// literal, or one that was looked up a short while ago. False: it has to be looked up. It does
	// not wait for anything. Nil: every name has to be looked up.
	Known func(name string) (ResolveReport, bool)

	Renew      Renewer // decides when pages are asked for again; nil: none is
	RenewShare float64 // of the requests for pages that renewals get where there is too much to do, 0 to 1
}

// DefaultOptions are those of a polite crawler.
func DefaultOptions() Options {
	return Options{
		Politeness: politeness.DefaultOptions(), Robots: robots.DefaultOptions(), Tokens: []string{"amble"}, Obey: true,
		MaxRedirects: 5, MaxAttempts: 5, RetryDelay: time.Minute, Session: 3000, Resolvers: 64,
		Heads: 12, RenewShare: 0.5, ActiveHosts: 20_000, ActiveBytes: 256 << 20,
	}
}

// Validate says what is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	for _, v := range []struct {
		name string
		n    int
	}{
		{"MaxAttempts", int(o.MaxAttempts)}, {"Resolvers", o.Resolvers}, {"Heads", o.Heads},
		{"ActiveHosts", o.ActiveHosts}, {"ActiveBytes", o.ActiveBytes}, {"Tokens", len(o.Tokens)},
	} {
		if v.n <= 0 {
			errs = append(errs, fmt.Errorf("frontier: %s is %d, should be at least 1", v.name, v.n))
		}
	}
	if o.Session < 0 {
		errs = append(errs, fmt.Errorf("frontier: Session is %d, should not be negative", o.Session))
	}
	if !(o.RenewShare >= 0 && o.RenewShare <= 1) {
		errs = append(errs, fmt.Errorf("frontier: RenewShare is %g, should be between 0 and 1", o.RenewShare))
	}
	if len(o.Overrides) > maxOverrides {
		errs = append(errs, fmt.Errorf("frontier: %d Overrides, should be at most %d", len(o.Overrides), maxOverrides))
	}
	for i := range o.Overrides {
		errs = append(errs, o.Overrides[i].Politeness.Validate())
	}
	for i := range o.Ranges {
		errs = append(errs, o.Ranges[i].Limit.Validate())
	}
	return errors.Join(append(errs, o.Politeness.Validate(), o.Domain.Validate())...)
}

// RestartDelay is what a host owes after a crash when its Crawl-delay was never learned.
const RestartDelay = 10 * time.Second
