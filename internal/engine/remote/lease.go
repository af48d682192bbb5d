//go:build !core

package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/amble-crawler/amble/internal/web/weburl"
	"github.com/amble-crawler/amble/storage"
)

// ID names a remote lease. It cannot be guessed, and no other lease has it, also after a
// restart.
type ID string

// Bounds of remote leases.
const (
	// MaxLeaseCount is the most leases of one request.
	MaxLeaseCount = 1000
	// MinVisibility is the shortest that a lease may last.
	MinVisibility = time.Second
	// DefaultVisibility is how long a lease lasts if the request does not say.
	DefaultVisibility = time.Minute
	// MaxVisibility is the longest that a lease may last before it is extended.
	MaxVisibility = 24 * time.Hour
	// MaxLeaseLife is the longest that a lease may last with all of its extensions.
	MaxLeaseLife = 7 * 24 * time.Hour
	// MaxFetcherName is the longest name of a fetcher, in bytes.
	MaxFetcherName = 64
)

// Request says what a fetcher wants.
type Request struct {
	Fetcher    string        // its name: 1 to MaxFetcherName letters, digits, dots, dashes and underscores
	N          int           // the most leases wanted, 1 to MaxLeaseCount
	Wait       time.Duration // for the first lease, until there is one; 0: it does not wait
	Visibility time.Duration // until the deadline; 0: DefaultVisibility
	// Host is the only host whose URLs are wanted; empty: any.
	Host string
	// PerHost is how many requests to one host may be in flight, those of this request and all
	// others together; 0: one. It never exceeds what politeness allows: one where a delay is in
	// force, else politeness.per_host.
	PerHost int
	// Hosts is the most hosts whose URLs are wanted; 0: any number.
	Hosts int
	// Bare leaves Lease.Header out.
	Bare bool
}

// Lease is the permission for one request by a fetcher, until its deadline. The request is a
// GET without a fragment, follows no redirect, and ends before the deadline.
type Lease struct {
	ID       ID
	URL      weburl.URL
	Host     string
	Key      string      // of the queue of the host: its name, or what a client has put it with
	Address  netip.Addr  // the only one to dial, if the fetcher can choose; invalid: none is known
	Header   http.Header // to send: User-Agent, validators, a Referer; nil with Request.Bare
	Depth    uint16
	Metadata storage.Metadata // of the URL; nil: it has none
	Delay    time.Duration    // in force, from the end of this request to the start of the next
	MaxBody  int64            // bytes of the decoded body that are of use
	Given    time.Time
	Deadline time.Time
}

// Errors of remote leases.
var (
	// ErrCutOff says that the operator has cut the fetcher off.
	ErrCutOff = errors.New("the operator has cut this fetcher off")
	// ErrLease says that a lease request or a name is out of bounds.
	ErrLease = errors.New("invalid lease request")
)

// IsFetcherName reports whether a fetcher may have a name.
func IsFetcherName(name string) bool {
	if len(name) == 0 || len(name) > MaxFetcherName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// Validate completes a request, and says what is wrong with it.
func (r *Request) Validate() error {
	if r.Visibility == 0 {
		r.Visibility = DefaultVisibility
	}
	switch {
	case !IsFetcherName(r.Fetcher):
		return fmt.Errorf(
			"%w: the name of the fetcher is %q; use 1 to %d letters, digits, dots, dashes and underscores",
			ErrLease, r.Fetcher, MaxFetcherName)
	case r.N < 1 || r.N > MaxLeaseCount:
		return fmt.Errorf("%w: %d leases, should be 1 to %d", ErrLease, r.N, MaxLeaseCount)
	case r.PerHost < 0 || r.Hosts < 0 || r.Wait < 0:
		return fmt.Errorf("%w: PerHost, Hosts and Wait may not be negative", ErrLease)
	}
	return ValidateVisibility(r.Visibility)
}

// ValidateVisibility returns an error if no lease may last so long. It is ErrLease.
func ValidateVisibility(d time.Duration) error {
	if d < MinVisibility || d > MaxVisibility {
		return fmt.Errorf("%w: a lease of %v, should be %v to %v", ErrLease, d, MinVisibility, MaxVisibility)
	}
	return nil
}
