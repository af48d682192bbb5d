package weburl

import "golang.org/x/net/publicsuffix"

// RegistrableDomain returns the registrable domain of a host, by the Public Suffix List:
// example.co.uk for www.example.co.uk. For a host without one (an IP address, a public suffix
// itself, a single label) it returns host. host is a host as [URL.Host] returns it.
func RegistrableDomain(host string) string {
	if host == "" || host[0] == '[' || isIPv4(host) {
		return host
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return domain
}

// ReverseHost returns the labels of host in reverse order, com.example.www for www.example.com, so that the hosts of a
// domain sort together. IP addresses stay as they are. ReverseHost(ReverseHost(host)) is host.
func ReverseHost(host string) string {
	if isIPv4(host) {
		return host
	}
	reversed := make([]byte, 0, len(host))
	for end := len(host); ; {
		start := end
		for start > 0 && host[start-1] != '.' {
			start--
		}
		reversed = append(reversed, host[start:end]...)
		if start == 0 {
			return string(reversed)
		}
		reversed = append(reversed, '.')
		end = start - 1
	}
}
