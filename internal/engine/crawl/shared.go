package crawl

import (
	"sync/atomic"
	"time"

	"github.com/amble-crawler/amble/internal/engine/crawl/internal/disk"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/gates"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/gc"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/quota"
	"github.com/amble-crawler/amble/internal/engine/crawl/internal/work"
	"github.com/amble-crawler/amble/internal/engine/inspect"
	"github.com/amble-crawler/amble/internal/records/hostsort"
	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/internal/rules/wall"
	"github.com/amble-crawler/amble/internal/web/fetch"
	"github.com/amble-crawler/amble/internal/web/spool"
)

// Shared is what the engines of one process share: the client with its connections, names and
// bandwidth, the spool, the room for sorting, the permissions to parse, and the quota of requests. It is safe for
// concurrent use.
//
// An engine makes its own unless Options.Shared is another's. Whoever closes the engine that made it
// has closed the others before.
type Shared struct {
	client  *fetch.Client
	spool   *spool.Pool
	room    *hostsort.Workspace
	parsers work.Parsers
	marks   *wall.Marks
	gates   gates.Gates // nil: there is one engine
	quota   *quota.Process
	heap    *gc.Pace // how much garbage the process may have

	keptDelay atomic.Pointer[time.Duration]           // of hosts, set by clients; nil: that of the options
	optOuts   atomic.Pointer[map[string]optout.Entry] // that commands recorded, by mark; nil: none
}

// newShared opens what engines share, in the data directory of the first of them. gates are nil if there is one.
func newShared(o *Options, space *disk.Space, gates gates.Gates) (*Shared, error) {
	s := &Shared{parsers: work.NewParsers(), marks: inspect.KnownMarks(), gates: gates}
	var err error
	if s.spool, err = spool.Open(o.Spool); err != nil {
		return nil, err
	}
	s.room = newSortSpace(s.spool, space)
	fo := o.Fetch
	fo.Spool = s.spool
	if s.client, err = fetch.New(fo, o.Now); err != nil {
		return nil, err
	}
	s.quota = quota.NewProcess(o.Live().quota(), s.client, o.Now)
	s.heap = gc.StartPace()
	return s, nil
}

// Close closes what the engines have shared, which are closed.
func (s *Shared) Close() {
	s.client.Close()
	s.heap.Stop()
}

// quota are the limits of requests and lookups.
func (l Live) quota() quota.Limits {
	return quota.Limits{Workers: l.Workers, Lookups: l.Resolvers, MaxRate: l.MaxRate}
}

// mayBegin takes note of the requests that were refused and may be admitted now.
func (g *gathering) mayBegin() {
	if g.gate == nil {
		return
	}
	for _, host := range g.gate.TakeWoken() {
		g.f.Admissible(host, g.o.Now())
	}
}

// leaveGate ends the part of the engine. A fetcher may work on a lease until its deadline.
func (pm *permits) leaveGate() {
	if pm.gate == nil {
		return // no other engine has to know
	}
	now := pm.o.Now()
	reopen := pm.remote.Len() > 0 || pm.f.Holds(now)
	pm.remote.abandon(pm.f)
	pm.gate.Leave(reopen, now)
}
