package config

import (
	"net/url"
	"strings"

	"github.com/amble-crawler/amble/internal/fetch"
)

// Identity says who the crawler is, to the operators of the sites that it requests from.
type Identity struct {
	URL         string   `mapstructure:"url"`          // origin of the public documents; empty: there are none
	Listen      string   `mapstructure:"listen"`       // host:port of the listener for them; empty: none
	TLSCert     string   `mapstructure:"tls_cert"`     // file of the certificate chain, PEM; empty: no TLS
	TLSKey      string   `mapstructure:"tls_key"`      // file of its key, PEM
	BehindProxy bool     `mapstructure:"behind_proxy"` // clients come through one, which says who they are
	Operator    string   `mapstructure:"operator"`     // who runs the crawler
	Purpose     string   `mapstructure:"purpose"`      // why it crawls
	Addresses   []string `mapstructure:"addresses"`    // that requests leave from
	Sign        string   `mapstructure:"sign"`         // always, asked or never
	Legacy      []string `mapstructure:"legacy"`       // hosts that get Signature-Agent as a bare string
	LookupDays  int      `mapstructure:"lookup_days"`  // days whose requests the look-up shows; 0: there is none
}

func defaultIdentity() Identity {
	return Identity{Addresses: []string{}, Sign: "never", Legacy: []string{}, LookupDays: 30}
}

// identity checks the section.
func (k *checker) identity() {
	i := k.c.Identity
	k.oneOf("identity.sign", i.Sign)
	if i.URL != "" && !isHTTPSOrigin(i.URL) {
		k.reject("identity.url", "want https and the name of a host, without a path, such as https://bot.example.org")
	}
	if i.Listen != "" && !isListenAddress(i.Listen) {
		k.reject("identity.listen", `want host:port such as :8443, or "" for no listener`)
	}
	for key, text := range map[string]string{"identity.operator": i.Operator, "identity.purpose": i.Purpose} {
		if len(text) > 1000 {
			k.reject(key, "want at most 1000 bytes")
		}
	}
	if i.LookupDays < 0 || i.LookupDays > 3650 {
		k.reject("identity.lookup_days", "want 0 to 3650")
	}
	items(k, "identity.addresses", i.Addresses, fetch.ParseRange, "want an address such as 192.0.2.7, or a range such "+
		"as 192.0.2.0/24")
	items(k, "identity.legacy", i.Legacy, fetch.ParseHostPattern, "want a host: example.com, *.example.com for those "+
		"below it, or * for all")
	switch {
	case (i.TLSCert == "") != (i.TLSKey == ""):
		k.conflict("identity.tls_cert", "and identity.tls_key belong together; set both or none")
	case i.URL != "":
	case i.Sign != "never":
		k.conflict("identity.sign", "needs identity.url, where verifiers find the keys")
	case i.Listen != "":
		k.conflict("identity.listen", "needs identity.url, by which others reach it")
	}
}

// isHTTPSOrigin reports whether text is an origin as it is serialized (RFC 6454): key directories are at one.
func isHTTPSOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && text == "https://"+u.Host && isHeaderText(text) &&
		text == strings.ToLower(text) && u.Port() != "443" && u.User == nil
}

// LegacyHosts returns the hosts of identity.legacy.
func (i *Identity) LegacyHosts() []fetch.HostPattern { return parsed(i.Legacy, fetch.ParseHostPattern) }
