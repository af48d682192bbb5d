package listen

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// HostOf returns a host without its port and brackets.
func HostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	return host
}

// IsAddress reports whether a host is an IP address.
func IsAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// IsLoopback reports whether a host, with or without a port, is localhost or a loopback address.
func IsLoopback(hostport string) bool {
	host := HostOf(hostport)
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// TokenOf returns the token of a request: that of the scheme Bearer, or the password of Basic,
// which browsers prompt for.
func TokenOf(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// SameToken compares tokens in a time that reveals nothing about them.
func SameToken(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// ClientOf returns the network of the client of a request: an IPv4 address, or the /64 of an IPv6
// address. If it came through a proxy, that is what the proxy says.
func ClientOf(r *http.Request, behindProxy bool) netip.Prefix {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	address := peer.Addr()
	if behindProxy {
		// The proxy appends its peer to the received value.
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if a, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1])); err == nil {
			address = a
		}
	}
	address = address.Unmap().WithZone("")
	bits := 32
	if address.Is6() {
		bits = 64
	}
	client, _ := address.Prefix(bits)
	return client
}
