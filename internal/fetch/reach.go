package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"code.dny.dev/ssrf"
)

// errBlocked is wrapped by every refusal to dial.
var errBlocked = errors.New("blocked by the reach rules")

// ErrPort is wrapped by every refusal to dial that is for the port, and not for the address.
var ErrPort = fmt.Errorf("%w of ports", errBlocked)

// reach decides which addresses and ports may be dialled. It is immutable.
type reach struct {
	guard        *ssrf.Guardian
	allowPrivate bool
	deny         []netip.Prefix
	ports        []uint16 // empty: all but bad
	bad          []uint16 // in ascending order
}

func newReach(o Options) *reach {
	var v4, v6 []netip.Prefix
	for _, p := range o.AllowRanges {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return &reach{
		guard: ssrf.New(ssrf.WithAnyPort(), ssrf.WithAnyNetwork(),
			ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
			ssrf.WithDeniedV4Prefixes(cloudMetadata()...)),
		allowPrivate: o.AllowPrivate,
		deny:         slices.Clone(o.DenyRanges),
		ports:        slices.Clone(o.Ports),
		bad:          badPorts(),
	}
}

// ParseRange reads a range of addresses, such as 10.0.0.0/8, or a single one.
func ParseRange(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a range such as 10.0.0.0/8", text)
	}
	return p.Masked(), nil
}

// cloudMetadata lists the metadata services that live in otherwise public
// address space: Azure's. All others are link-local, private or shared space.
func cloudMetadata() []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{168, 63, 129, 16}), 32)}
}

// checkAddr returns an error that wraps errBlocked if a may not be dialled.
func (r *reach) checkAddr(a netip.Addr) error {
	a = a.Unmap()
	switch {
	case !a.IsValid():
		return fmt.Errorf("no address: %w", errBlocked)
	case a.Zone() != "":
		return fmt.Errorf("address %s with a zone: %w", a, errBlocked)
	case a.IsUnspecified() || a.IsMulticast():
		return fmt.Errorf("address %s is no host: %w", a, errBlocked)
	}
	for _, p := range r.deny {
		if p.Contains(a) {
			return fmt.Errorf("address %s in denied range %s: %w", a, p, errBlocked)
		}
	}
	if r.allowPrivate {
		return nil
	}
	if err := r.guard.SafeAddr(a); err != nil {
		return fmt.Errorf("%w: %w", errBlocked, err)
	}
	return nil
}

// checkPort returns an error that wraps errBlocked if no connection may be made
// to that port.
func (r *reach) checkPort(port uint16) error {
	if port == 0 || (len(r.ports) > 0 && !slices.Contains(r.ports, port)) {
		return fmt.Errorf("port %d is not among the allowed ports: %w", port, ErrPort)
	}
	if _, bad := slices.BinarySearch(r.bad, port); bad && len(r.ports) == 0 {
		return fmt.Errorf("port %d is not for HTTP, and no browser would connect to it; fetch.ports may name it: %w", port, ErrPort)
	}
	return nil
}

// check is checkAddr and checkPort.
func (r *reach) check(ap netip.AddrPort) error {
	if err := r.checkPort(ap.Port()); err != nil {
		return err
	}
	return r.checkAddr(ap.Addr())
}
