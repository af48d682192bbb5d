// Package inspect says what is known of hosts and URLs, as the commands print it and the API sends it. It reads the store in short
// transactions and holds no more than what it was asked for, so that it may look into a frontier of any size while a crawl works on it.
// What it sees is of different moments.
//
// Its types are plain data that goes out as JSON; docs/OUTPUT.md describes the line of a URL.
package inspect

import (
	"context"
	"encoding/json"
	"io"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/revisit"
	"github.com/amble-crawler/amble/internal/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Store is what is read of the storage package.
type Store interface {
	Walk(context.Context, storage.Position, storage.States, func(*storage.Located) error) (storage.Position, error)
	Hosts(func(*storage.Host) error) error
	HostsFrom(id storage.HostID, most int, f func(*storage.Host) error) (storage.HostID, error)
	Counters() storage.Counters
	Names(under, after string, f func(name string, id storage.HostID) error) error
	HostByID(storage.HostID) (storage.Host, error)
	HostByName(string) (storage.Host, error)
	Lookup(weburl.URL) (storage.Head, storage.Host, error)
	URL(storage.HostID, uint32) (weburl.URL, error)
	URLs(host storage.HostID, from uint32, max int, f func(storage.Head)) (uint32, error)
	Heads(storage.HeadsRequest) (storage.Heads, error)
	Policy(weburl.Origin) ([]byte, error)
	Past(weburl.Origin) ([]byte, error)
	Traps(storage.HostID) ([]storage.TrapCount, error)
	Mark(string) ([]byte, error)
	Renewals(storage.HostID, uint8, int, func(storage.Head)) error
}

// Live is what only a running crawl knows of a host.
type Live struct {
	Host     storage.HostID
	Place    string        // of the frontier
	Next     time.Time     // when it is asked next; zero: an event decides
	Delay    time.Duration // between requests
	Robots   robots.Reason // why robots.txt holds all it has to do; ReasonNone: it does not
	InFlight int
	Address  netip.Addr              // zero: it has none at the moment
	Polite   *politeness.Explanation // nil: what the store holds counts
}

// Options are those of the crawl that is looked at.
type Options struct {
	Politeness func(host string) *politeness.Options // in force for a host
	Robots     robots.Options
	Tokens     []string
	Obey       bool
	Renew      *revisit.Options // when pages are asked for again; nil: never
	Now        func() time.Time
	// Scope says whether a URL is in the scope, and why. nil: nothing is said of that.
	Scope func(weburl.URL) (in bool, why string)
	// Live asks the running crawl about hosts, at most LivePage at a time. The answer may leave some out, or all where no crawl
	// runs. nil: none does.
	Live func(context.Context, []storage.HostID) ([]Live, error)
	// Table asks the running crawl about all hosts at once, so that a list of them needs no walk over the store. The answer may be some
	// seconds old, or nil where no crawl runs. nil: none does.
	Table func(context.Context) (*Table, error)
}

// LivePage is how many hosts Options.Live is asked about at a time.
const LivePage = 500

// View looks into a store. It may be used by any number of goroutines.
type View struct {
	store  Store
	o      Options
	lookAt int // hosts that RenewalPlan looks at
}

// New makes a view of a store.
func New(s Store, o Options) *View { return &View{store: s, o: o, lookAt: maxLookedAt} }

// live asks about one host.
func (v *View) live(ctx context.Context, id storage.HostID) (*Live, error) {
	if v.o.Live == nil {
		return nil, nil
	}
	answers, err := v.o.Live(ctx, []storage.HostID{id})
	if err != nil || len(answers) == 0 {
		return nil, err
	}
	return &answers[0], nil
}

// Lines writes one JSON object a line. URLs stay readable: nothing of it ends up in a script.
type Lines struct{ encoder *json.Encoder }

// NewLines writes to w, each line in one write.
func NewLines(w io.Writer) Lines {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return Lines{encoder}
}

// Write writes a line.
func (l Lines) Write(value any) error { return l.encoder.Encode(value) }
