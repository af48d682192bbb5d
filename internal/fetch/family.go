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

// network is the network that the resolver looks up.
func (f Family) network() string {
	switch f {
	case IPv4Only:
		return "ip4"
	case IPv6Only:
		return "ip6"
	}
	return "ip"
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
