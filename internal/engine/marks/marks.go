// Package marks names what a crawl keeps in its database besides the rows of hosts and URLs, and says which of it is
// about one host. Sweeps, mazes and remote leases name theirs themselves.
package marks

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/internal/rules/optout"
	"github.com/amble-crawler/amble/storage"
)

// Names of marks.
const (
	Paused   = "paused"   // since when the whole crawl is paused
	Held     = "owed"     // since when every host has a restart hold
	Plan     = "plan"     // what the recrawl plan has learned
	Incoming = "in"       // the sequence up to which the database has the URLs that other shards have published
	Deaths   = "deaths"   // URLs that were in flight at the last death, each with the number of consecutive deaths
	Delay    = "delay"    // of hosts, in nanoseconds, as clients have set it
	Inactive = "inactive" // nothing is leased
	Sums     = "totals"   // what the crawl has passed and keeps no rows of: see Totals
)

// Beginnings of names of marks.
const (
	OptOuts   = "optout/"    // a commanded opt-out; the scope, a space and the value follow
	TDM       = "tdm/"       // the TDM file of an origin, or terms of Really Simple Licensing at a URL
	CutOff    = "cutoff/"    // a fetcher that is cut off
	QueueKey  = "queue/"     // the key of the queue of a host; the name of the host follows
	QueueHost = "queuehost/" // a host of a key; see OfQueueHost
	Limit     = "limit/"     // the limit of a host; its id follows
)

// MaxDeaths is the most bytes of the mark Deaths.
const MaxDeaths = 1 << 20

// OptOut returns the mark of a commanded opt-out.
func OptOut(scope optout.Scope, value string) string { return OptOuts + string(scope) + " " + value }

// OfLimit returns the mark with the limit of a host.
func OfLimit(host storage.HostID) string { return fmt.Sprintf("%s%d", Limit, host) }

// HostOfLimit returns the host in the name of a mark with a limit; false: it is another mark.
func HostOfLimit(name string) (storage.HostID, bool) {
	rest, ok := strings.CutPrefix(name, Limit)
	id, err := strconv.ParseUint(rest, 10, 32)
	return storage.HostID(id), ok && err == nil
}

// OfQueueHost returns the mark of a host of a key, or what these begin with: the key, escaped as in a query, a slash
// and the host.
func OfQueueHost(key, host string) string { return QueueHost + url.QueryEscape(key) + "/" + host }
