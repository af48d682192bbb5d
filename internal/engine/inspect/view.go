// Package inspect reports what is known of hosts and URLs, as the commands print it and the API
// sends it. It reads the store in short transactions and holds no more than the result of a query,
// so that it can inspect a frontier of any size while a crawl works on it. Its data are of
// different instants.
//
// Its types are plain data that is sent as JSON; docs/OUTPUT.md describes the line of a URL.
package inspect

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/amble-crawler/amble/frontier"
	"github.com/amble-crawler/amble/internal/rules/recrawl"
	"github.com/amble-crawler/amble/internal/rules/seeds"
	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
	"github.com/amble-crawler/amble/storage"
)

// Store is the part of the storage package that is read.
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
	RobotsHistory(weburl.Origin) ([]byte, error)
	Traps(storage.HostID) ([]storage.TrapCount, error)
	Mark(string) ([]byte, error)
	Recrawls(storage.HostID, uint8, int, func(storage.Head)) error
}

// Options are those of the inspected crawl.
type Options struct {
	Politeness func(host string) *politeness.Options // in force for a host
	Robots     robots.Options
	Tokens     []string
	Obey       bool
	Recrawl    *recrawl.Options // when pages are recrawled; nil: never
	// RecrawlPart returns what the crawl has of the budget, if it is a shard of a cluster that divides
	// Recrawl.Budget; nil: all.
	RecrawlPart func() float64
	Now         func() time.Time
	// Scope says whether a URL with a row is in the scope, and why; one that is not in the store has a zero row. nil:
	// this is not reported.
	Scope func(u weburl.URL, head *storage.Entry) (in bool, why string)
	// Seeds returns the seeds in force. nil: the seeds of pages are not reported.
	Seeds func() *seeds.Set
	// Group returns the group that a host is in by its name; empty: none. nil: there are no groups.
	Group func(host string) string
	// OptOut returns the opt-out that covers all of a host, or the address that it has if that is
	// known; empty: none does. nil: this is not reported.
	OptOut func(host, address string) string
	// Slowdown says that the hosts of an address became slower together; empty: they did not. nil:
	// this is not reported.
	Slowdown func(address string) string
	// Live returns what the running crawl knows of at most LivePage hosts. The result may leave out
	// some, or all if no crawl runs. nil: no crawl runs.
	Live func(context.Context, []storage.HostID) ([]frontier.View, error)
	// Table returns the state of all hosts of the running crawl, so that a list of them needs no
	// walk over the store. It may be some seconds old, or nil if no crawl runs. nil: no crawl runs.
	Table func(context.Context) (*Table, error)
}

// LivePage is the largest number of hosts for Options.Live.
const LivePage = 500

// View inspects a store. It may be used by any number of goroutines.
type View struct{ records }

// records are what a view reads of the store: robots.txt files and lists of URLs.
type records struct {
	store Store
	o     Options
}

// New returns a view of a store.
func New(s Store, o Options) *View { return &View{records{store: s, o: o}} }

// live returns what the running crawl knows of a host; nil if it does not know it.
func (v *records) live(ctx context.Context, id storage.HostID) (*frontier.View, error) {
	if v.o.Live == nil {
		return nil, nil
	}
	answers, err := v.o.Live(ctx, []storage.HostID{id})
	if err != nil || len(answers) == 0 {
		return nil, err
	}
	return &answers[0], nil
}

// Lines writes one JSON object a line. URLs stay readable: nothing of it is put into a script.
type Lines struct{ encoder *json.Encoder }

// NewLines returns Lines that write to w, each line in one write.
func NewLines(w io.Writer) Lines {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return Lines{encoder}
}

// Write writes a line.
func (l Lines) Write(value any) error { return l.encoder.Encode(value) }
