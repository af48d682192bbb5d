package config

import (
	"net/netip"
	"net/url"
	"strings"
)

// NoContact says why nobody who finds this crawler in a log could reach its operator; empty: somebody could. It is the
// value of fetch.contact, or of fetch.user_agent, that counts.
func NoContact(c *Config) string {
	const set = "; set it to a mail address, or to the URL of a page about this crawler, that you read"
	contact := c.Fetch.Contact
	if contact == "" {
		if agent := c.Fetch.UserAgent; strings.Contains(agent, "://") || strings.Contains(agent, "@") {
			return ""
		}
		return "fetch.contact is empty" + set
	}
	if host := contactHost(contact); host == "" || isPlaceholder(host) {
		return "fetch.contact is " + contact + ", which reaches nobody" + set
	}
	if c.Identity.URL != "" && isPlaceholder(contactHost(c.Identity.URL)) {
		return "identity.url is " + c.Identity.URL + ", which nobody can open; set it to an origin of yours"
	}
	return ""
}

// contactHost returns the host of a mail address or a URL; empty: it is none.
func contactHost(contact string) string {
	if _, host, isMail := strings.Cut(strings.TrimPrefix(contact, "mailto:"), "@"); isMail {
		return strings.ToLower(strings.Trim(host, "<> "))
	}
	u, err := url.Parse(contact)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// isPlaceholder reports whether a host stands in examples, or is that of every machine (RFC 2606, RFC 6761).
func isPlaceholder(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsUnspecified()
	}
	for _, name := range []string{
		"example.com", "example.org", "example.net", "example", "test", "invalid", "localhost", "local",
		"yourdomain.com", "your-domain.com", "domain.com", "mail.address",
	} {
		if host == name || strings.HasSuffix(host, "."+name) {
			return true
		}
	}
	return !strings.Contains(host, ".")
}
