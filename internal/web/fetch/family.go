package fetch

import (
	"fmt"
	"net/netip"
)

// Family says which addresses of a host are dialled.
type Family uint8

// The families.
const (
	IPv4First Family = iota // both, IPv4 if there is one
	IPv6First               // both, IPv6 if there is one
	IPv4Only
	IPv6Only
)

// families returns the names of the families.
func families() []string { return []string{"ipv4-first", "ipv6-first", "ipv4", "ipv6"} }

// ParseFamily is the inverse of String.
func ParseFamily(name string) (Family, error) {
	for i, known := range families() {
		if name == known {
			return Family(i), nil
		}
	}
	return 0, fmt.Errorf("%q is none of %v", name, families())
}

// String returns ipv4-first, ipv6-first, ipv4 or ipv6.
func (f Family) String() string {
	if names := families(); int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("family_%d", uint8(f))
}

// networks are what the resolver looks up, one after the other until one has an address; every wants
// the addresses of both families.
func (f Family) networks(every bool) []string {
	switch {
	case f == IPv4Only:
		return []string{"ip4"}
	case f == IPv6Only:
		return []string{"ip6"}
	case every:
		return []string{"ip"}
	case f == IPv6First:
		return []string{"ip6", "ip4"}
	}
	return []string{"ip4", "ip6"}
}

// compare orders addresses, the preferred family first.
func (f Family) compare(a, b netip.Addr) int {
	if f == IPv6First && a.Is4() != b.Is4() {
		return b.Compare(a)
	}
	return a.Compare(b) // IPv4 sorts first
}

// check refuses an address of a family that is not dialled.
func (f Family) check(a netip.Addr) error {
	if f == IPv4Only && !a.Is4() || f == IPv6Only && a.Is4() {
		return fmt.Errorf("address %s is not %s: %w", a, f, errBlocked)
	}
	return nil
}
