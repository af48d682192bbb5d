package config

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/web/fetch"
)

// Fetch bounds a single request, and all requests together.
type Fetch struct {
	UserAgent      string        `mapstructure:"user_agent" is:"shared"`
	Contact        string        `mapstructure:"contact" is:"shared"`
	Headers        []string      `mapstructure:"headers"`
	Auth           []string      `mapstructure:"auth" is:"secret"`
	Cookies        []string      `mapstructure:"cookies"`
	ContentTypes   []string      `mapstructure:"content_types" is:"agreed"`
	Timeout        time.Duration `mapstructure:"timeout" range:"1ms..1h"`
	ConnectTimeout time.Duration `mapstructure:"connect_timeout" range:"1ms..1h"`
	HeaderTimeout  time.Duration `mapstructure:"header_timeout" range:"1ms..1h"`
	IdleTimeout    time.Duration `mapstructure:"idle_timeout" range:"1ms..1h"`
	ResolveTimeout time.Duration `mapstructure:"resolve_timeout" range:"1ms..1h"`
	MinRate        ByteSize      `mapstructure:"min_rate" range:"0B..1MiB"`
	Bandwidth      ByteSize      `mapstructure:"bandwidth" range:"0|1KiB..1TiB" is:"live"`
	MaxHeader      ByteSize      `mapstructure:"max_header" range:"1KiB..16MiB"`
	MaxBody        ByteSize      `mapstructure:"max_body" range:"1KiB..1GiB" is:"agreed"`
	SpoolAbove     ByteSize      `mapstructure:"spool_above" range:"4KiB..1GiB"`
	MemoryBudget   ByteSize      `mapstructure:"memory_budget" range:"1MiB..1TiB"`
	MaxRedirects   int           `mapstructure:"max_redirects" range:"0..50" is:"agreed"`
	HTTP2          bool          `mapstructure:"http2"`
	Addresses      string        `mapstructure:"addresses" default:"ipv4-first"`
	Ports          []string      `mapstructure:"ports"`
	AllowPrivate   bool          `mapstructure:"allow_private"`
	AllowAddresses []string      `mapstructure:"allow_addresses"`
	DenyAddresses  []string      `mapstructure:"deny_addresses"`
	Resolver       string        `mapstructure:"resolver"`
	Resolvers      int           `mapstructure:"resolvers" range:"1..1024" is:"live"`
	Proxy          string        `mapstructure:"proxy"`
	ProxyAuth      string        `mapstructure:"proxy_auth" is:"secret"`
	TLSCAFile      string        `mapstructure:"tls_ca_file" is:"path"`
}

// fetchTexts checks the texts of the section.
func (k *checker) fetchTexts() {
	f := k.c.Fetch
	if !isHeaderText(f.UserAgent) {
		k.reject("fetch.user_agent", "want at most 256 printable ASCII characters on one line")
	}
	if f.Contact != "" && !isContact(f.Contact) {
		k.reject("fetch.contact", "want a URL such as https://example.org/crawler or a mail address such as "+
			"crawler@example.org")
	}
	if f.Resolver != "" && !isResolver(f.Resolver) {
		k.reject("fetch.resolver", "want the IP address and port of a DNS server, such as 9.9.9.9:53 or "+
			"[2620:fe::fe]:53")
	}
	if _, err := fetch.ParseFamily(f.Addresses); err != nil {
		k.reject("fetch.addresses", "want ipv4-first, ipv6-first, ipv4 or ipv6")
	}
	if err := fetch.ParseProxy(f.Proxy); err != nil {
		k.reject("fetch.proxy", err.Error()+"; these go into fetch.proxy_auth")
	}
	if f.ProxyAuth != "" && (!isHeaderText(f.ProxyAuth) || !strings.Contains(f.ProxyAuth, ":")) {
		k.reject("fetch.proxy_auth", "want USER:PASSWORD in printable ASCII characters")
	} else if f.ProxyAuth != "" && f.Proxy == "" {
		k.reject("fetch.proxy_auth", "is for a proxy, and fetch.proxy names none")
	}
	const wantRange = "want an address such as 10.1.2.3, or a range such as 10.0.0.0/8"
	items(k, "fetch.headers", f.Headers, fetch.ParseHeader, "")
	items(k, "fetch.auth", f.Auth, fetch.ParseCredential, "")
	items(k, "fetch.cookies", f.Cookies, fetch.ParseHostPattern, "want a host: example.com, *.example.com for those "+
		"below it, or * for all")
	items(k, "fetch.content_types", f.ContentTypes, parseMediaRange,
		"want a media type such as text/html, or all of a kind such as text/*")
	items(k, "fetch.ports", f.Ports, parsePort, "want the number of a port: 1 to 65535")
	items(k, "fetch.allow_addresses", f.AllowAddresses, fetch.ParseRange, wantRange)
	items(k, "fetch.deny_addresses", f.DenyAddresses, fetch.ParseRange, wantRange)
}

// items rejects each item of a list that parse refuses. want says what is valid; if it is empty the
// error does.
func items[T any](k *checker, key string, list []string, parse func(string) (T, error), want string) {
	for i, item := range list {
		if _, err := parse(item); err != nil {
			k.rejectItem(key, i, item, cmp.Or(want, err.Error()))
		}
	}
}

// parsed parses a list of items that were checked.
func parsed[T any](list []string, parse func(string) (T, error)) (all []T) {
	for _, item := range list {
		if value, err := parse(item); err == nil {
			all = append(all, value)
		}
	}
	return all
}

// errItem is an invalid item; the checker says what is valid.
var errItem = errors.New("invalid item")

func parseMediaRange(text string) (string, error) {
	if !fetch.ValidMediaRange(text) {
		return "", errItem
	}
	return text, nil
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, errItem
	}
	return uint16(n), nil
}

// FetchOptions returns the options of internal/web/fetch. version is that of the program.
func (c *Config) FetchOptions(version string) fetch.Options {
	all, _ := c.options()
	f, o := c.Fetch, all.Fetch
	o.UserAgent = c.UserAgent(version)
	o.From = c.mailAddress()
	o.Headers = parsed(f.Headers, fetch.ParseHeader)
	o.Credentials = parsed(f.Auth, fetch.ParseCredential)
	o.CookieHosts = parsed(f.Cookies, fetch.ParseHostPattern)
	o.ContentTypes = parsed(f.ContentTypes, parseMediaRange)
	o.TLSTimeout = f.ConnectTimeout
	o.Family, _ = fetch.ParseFamily(f.Addresses)
	o.Ports = parsed(f.Ports, parsePort)
	o.AllowRanges = parsed(f.AllowAddresses, fetch.ParseRange)
	o.DenyRanges = parsed(f.DenyAddresses, fetch.ParseRange)
	o.MaxIdleConns = max(o.MaxIdleConns, c.Crawl.Workers)
	return o
}
