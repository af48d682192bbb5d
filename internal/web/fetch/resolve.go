package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const (
	// maxAddrs bounds the addresses of one name.
	maxAddrs = 16
	// minTTL and maxTTL bound how long a resolution may be used. defaultTTL replaces an unknown
	// time to live, as of a hosts file.
	minTTL, maxTTL, defaultTTL = 30 * time.Second, time.Hour, 5 * time.Minute
)

// Resolution is the result of resolving a host name.
type Resolution struct {
	// Addrs are the addresses that may be dialled, at most 16: those of the family that
	// Options.Family prefers first, each family in ascending order. The other family is among them
	// only if every address was wanted, or if the preferred one has none that may be dialled. With a
	// proxy it is one address that only stands for the host.
	Addrs []netip.Addr
	// TTL is how long the result may be used: the least of its records, from 30 s to 1 h.
	TTL time.Duration
	// Aliases are the names that the CNAME records of the host lead to, in lower case without a dot at
	// the end, at most 8.
	Aliases []string
	// Remembered means that no name server was queried: the result comes from the cache.
	Remembered bool
}

// Resolve resolves a host as [weburl.URL.Host] returns it. An IP literal resolves to itself.
// Addresses that may not be dialled are left out; if none remains, the kind is KindBlockedAddress.
// Every error is an *[Error]. The Resolution that comes with KindDNSNotFound or KindBlockedAddress
// has no address; its TTL says how long that result holds. The absence of a name holds for at most
// five minutes, and 0 if the name servers set no time (RFC 2308, section 5). Results are cached for
// their TTL. The addresses must not be changed. every wants the addresses of both families, which
// takes two queries; otherwise one usually does.
func (c *Client) Resolve(ctx context.Context, host string, every bool) (Resolution, error) {
	start := c.now()
	res, kind, err := c.resolve(ctx, host, every, start)
	if err != nil {
		return res, &Error{Kind: kind, Op: "resolve", URL: host, Start: start, End: c.now(), Err: err}
	}
	return res, nil
}

func (c *Client) resolve(ctx context.Context, host string, every bool, now time.Time) (Resolution, Kind, error) {
	if res, kind, err, known := c.known(host, every, now); known {
		return res, kind, err
	}
	res, kind, err := c.lookup(ctx, host, every)
	c.resolutions.put(host, every, c.now(), res, kind, err)
	return res, kind, err
}

// Known is [Client.Resolve] where no name server has to be queried: for an IP literal, behind a
// proxy, and while a cached result holds that is not the absence of the name. False: call Resolve.
// It does not block.
func (c *Client) Known(host string, every bool) (Resolution, error, bool) {
	now := c.now()
	res, kind, err, known := c.known(host, every, now)
	switch {
	case !known, kind == KindDNSNotFound:
		return Resolution{}, nil, false
	case err != nil:
		err = &Error{Kind: kind, Op: "resolve", URL: host, Start: now, End: now, Err: err}
	}
	return res, err, true
}

// known returns what is known of a host without a query.
func (c *Client) known(host string, every bool, now time.Time) (Resolution, Kind, error, bool) {
	if c.proxy != nil {
		res, kind, err := c.resolveByProxy(host)
		return res, kind, err, true
	}
	if a, err := netip.ParseAddr(serverName(host)); err == nil {
		res, kind, err := c.reachable([]netip.Addr{a}, maxTTL)
		return res, kind, err, true
	}
	return c.resolutions.get(host, every, now)
}

// lookup queries the name servers. Of two families that are looked up in turn the first failure
// counts, unless it only says that there is no address.
func (c *Client) lookup(parent context.Context, host string, every bool) (res Resolution, kind Kind, err error) {
	ctx, cancel := context.WithTimeout(parent, c.o.ResolveTimeout)
	defer cancel()
	seen := &ttlRecord{}
	for _, network := range c.o.Family.networks(every) {
		next, nextKind, nextErr := c.resolveIn(context.WithValue(ctx, ttlKey{}, seen), network, host, seen)
		if nextErr == nil || err == nil || kind == KindDNSNotFound {
			res, kind, err = next, nextKind, nextErr
		}
		// RFC 8020: a name that does not exist has no records of other types. Some servers say so of
		// a name that only has no IPv6 address (RFC 4074, section 4.2).
		if err == nil || ctx.Err() != nil || network == "ip4" && seen.noSuchName() {
			break
		}
	}
	if err != nil && parent.Err() != nil {
		return Resolution{}, KindCanceled, context.Cause(parent)
	}
	return res, kind, err
}

// resolveIn queries the name servers for addresses of one network: ip, ip4 or ip6.
func (c *Client) resolveIn(ctx context.Context, network, host string, seen *ttlRecord) (Resolution, Kind, error) {
	addrs, err := c.addresses(ctx, network, host)
	if err == nil {
		if addrs = seen.ofName(addrs); len(addrs) == 0 {
			return Resolution{}, KindDNSFailure, errors.New("the answer has addresses of other names only")
		}
		res, kind, err := c.reachable(addrs, clampTTL(seen.least()))
		res.Aliases = seen.names()
		return res, kind, err
	}
	var dns *net.DNSError
	switch {
	case seen.fault() != nil:
		return Resolution{}, KindLocal, fmt.Errorf("%w: %w", errDescriptors, seen.fault())
	case errors.As(err, &dns) && dns.IsNotFound:
		return Resolution{TTL: seen.absence()}, KindDNSNotFound, err
	case ctx.Err() != nil, dns != nil && dns.IsTimeout:
		return Resolution{}, KindDNSTimeout, err
	}
	return Resolution{}, KindDNSFailure, err
}

// addresses looks up a host in the hosts file of the machine and at the name servers.
func (c *Client) addresses(ctx context.Context, network, host string) ([]netip.Addr, error) {
	name := absolute(host)
	// net.Resolver does not find "localhost." in the hosts file.
	if bare := strings.TrimSuffix(name, "."); !strings.Contains(bare, ".") {
		if addrs, err := c.hostsFile.LookupNetIP(ctx, network, bare); err == nil {
			return addrs, nil
		}
	}
	return c.resolver.LookupNetIP(ctx, network, name)
}

// absolute keeps the search list of the machine away from the names of URLs. Without the dot at its
// end, a name that does not exist would be tried again with the operator's own domain behind it.
func absolute(host string) string { return strings.TrimSuffix(host, ".") + "." }

// resolveByProxy returns a stand-in address for names that only the proxy resolves.
func (c *Client) resolveByProxy(host string) (Resolution, Kind, error) {
	if a, err := netip.ParseAddr(serverName(host)); err == nil {
		if err := c.reach.checkAddr(a); err != nil {
			return Resolution{TTL: maxTTL}, KindBlockedAddress, err
		}
	} else if local(host) && !c.o.AllowPrivate {
		return Resolution{TTL: maxTTL}, KindBlockedAddress, fmt.Errorf("%s is the proxy itself: %w", host, errBlocked)
	}
	return Resolution{Addrs: []netip.Addr{standIn(host)}, TTL: maxTTL}, 0, nil
}

// reachable sorts the addresses and drops those that may not be dialled.
func (c *Client) reachable(addrs []netip.Addr, ttl time.Duration) (Resolution, Kind, error) {
	res := Resolution{TTL: ttl}
	var blocked error
	for _, a := range addrs {
		a = a.Unmap()
		if err := cmp.Or(c.o.Family.check(a), c.reach.checkAddr(a)); err != nil {
			blocked = cmp.Or(blocked, err)
			continue
		}
		res.Addrs = append(res.Addrs, a)
	}
	slices.SortFunc(res.Addrs, c.o.Family.compare)
	res.Addrs = slices.Compact(res.Addrs)
	if len(res.Addrs) > maxAddrs {
		res.Addrs = res.Addrs[:maxAddrs]
	}
	switch {
	case len(res.Addrs) > 0:
		return res, 0, nil
	case blocked != nil:
		return res, KindBlockedAddress, blocked
	}
	return res, KindDNSNotFound, fmt.Errorf("the answer has no address")
}

func clampTTL(ttl time.Duration, ok bool) time.Duration {
	if !ok {
		return defaultTTL
	}
	return min(max(ttl, minTTL), maxTTL)
}
