package config

import (
	"net/url"
	"strings"

	"github.com/amble-crawler/amble/internal/web/fetch"
)

// Identity says who the crawler is, to the operators of the sites that it requests from.
type Identity struct {
	URL         string   `mapstructure:"url" is:"shared"`
	Listen      string   `mapstructure:"listen"`
	TLSCert     string   `mapstructure:"tls_cert" is:"path"`
	TLSKey      string   `mapstructure:"tls_key" is:"path"`
	BehindProxy bool     `mapstructure:"behind_proxy"`
	Operator    string   `mapstructure:"operator"`
	Purpose     string   `mapstructure:"purpose"`
	Addresses   []string `mapstructure:"addresses"`
	Sign        string   `mapstructure:"sign" default:"never" of:"always asked never"`
	Legacy      []string `mapstructure:"legacy"`
	LookupDays  int      `mapstructure:"lookup_days" range:"0..3650" default:"30"`
}

// identity checks the section.
func (k *checker) identity() {
	i := k.c.Identity
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
