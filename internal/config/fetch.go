package config

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/crawl"
	"github.com/amble-crawler/amble/internal/fetch"
	"github.com/amble-crawler/amble/internal/spool"
)

// Fetch bounds a single request, and all requests together.
type Fetch struct {
	UserAgent string   `mapstructure:"user_agent"` // empty: see Config.UserAgent
	Contact   string   `mapstructure:"contact"`    // URL or mail address for site operators
	Headers   []string `mapstructure:"headers"`    // Name: value, for every request
	Auth      []string `mapstructure:"auth"`       // see fetch.ParseCredential
	// hosts whose cookies are kept; see fetch.ParseHostPattern
	Cookies        []string      `mapstructure:"cookies"`
	ContentTypes   []string      `mapstructure:"content_types"`   // media ranges that are wanted; empty: all
	Timeout        time.Duration `mapstructure:"timeout"`         // whole request, body included
	ConnectTimeout time.Duration `mapstructure:"connect_timeout"` // TCP connection, and TLS handshake
	HeaderTimeout  time.Duration `mapstructure:"header_timeout"`  // from the request to the end of the header
	IdleTimeout    time.Duration `mapstructure:"idle_timeout"`    // between two pieces of a body
	ResolveTimeout time.Duration `mapstructure:"resolve_timeout"` // for the addresses of a name
	MinRate        ByteSize      `mapstructure:"min_rate"`        // bytes a second of a response; 0: any
	// bytes a second of all responses together; 0: no limit
	Bandwidth      ByteSize `mapstructure:"bandwidth"`
	MaxHeader      ByteSize `mapstructure:"max_header"`    // bytes of a response header
	MaxBody        ByteSize `mapstructure:"max_body"`      // decoded bytes kept of a body
	SpoolAbove     ByteSize `mapstructure:"spool_above"`   // larger bodies go to files
	MemoryBudget   ByteSize `mapstructure:"memory_budget"` // for all bodies together
	MaxRedirects   int      `mapstructure:"max_redirects"`
	HTTP2          bool     `mapstructure:"http2"`
	Addresses      string   `mapstructure:"addresses"`       // ipv4-first, ipv6-first, ipv4 or ipv6
	Ports          []string `mapstructure:"ports"`           // that may be reached; empty: all
	AllowPrivate   bool     `mapstructure:"allow_private"`   // true: may reach loopback and private addresses
	AllowAddresses []string `mapstructure:"allow_addresses"` // ranges that may be reached although they are private
	DenyAddresses  []string `mapstructure:"deny_addresses"`  // ranges that may never be reached
	Resolver       string   `mapstructure:"resolver"`        // host:port of a DNS server; empty: the system's
	Resolvers      int      `mapstructure:"resolvers"`       // names looked up at a time
	Proxy          string   `mapstructure:"proxy"`           // URL of a proxy; empty: none
	ProxyAuth      string   `mapstructure:"proxy_auth"`      // user:password for the proxy
	TLSCAFile      string   `mapstructure:"tls_ca_file"`     // PEM file with authorities to trust; empty: none
}

func defaultFetch(o *crawl.Options) Fetch {
	f := &o.Fetch
	return Fetch{
		Headers: []string{}, Auth: []string{}, Cookies: []string{}, ContentTypes: []string{},
		Timeout: f.Timeout, ConnectTimeout: f.ConnectTimeout, HeaderTimeout: f.HeaderTimeout,
		IdleTimeout: f.BodyIdleTimeout, ResolveTimeout: f.ResolveTimeout, MinRate: ByteSize(f.MinRate),
		Bandwidth: ByteSize(o.Bandwidth), MaxHeader: ByteSize(f.MaxHeader), MaxBody: ByteSize(f.MaxBody),
		SpoolAbove: ByteSize(o.Spool.Above), MemoryBudget: ByteSize(o.Spool.Budget),
		MaxRedirects: int(o.Frontier.MaxRedirects), HTTP2: f.HTTP2, Addresses: f.Family.String(),
		Ports: []string{}, AllowPrivate: f.AllowPrivate, AllowAddresses: []string{}, DenyAddresses: []string{},
		Resolver: f.Resolver, Resolvers: o.Frontier.Resolvers,
	}
}

// fetch checks the numbers of the section.
func (k *checker) fetch() {
	f := k.c.Fetch
	between(k, "fetch.timeout", f.Timeout, time.Millisecond, time.Hour)
	between(k, "fetch.connect_timeout", f.ConnectTimeout, time.Millisecond, time.Hour)
	between(k, "fetch.header_timeout", f.HeaderTimeout, time.Millisecond, time.Hour)
	between(k, "fetch.idle_timeout", f.IdleTimeout, time.Millisecond, time.Hour)
	between(k, "fetch.resolve_timeout", f.ResolveTimeout, time.Millisecond, time.Hour)
	between(k, "fetch.min_rate", f.MinRate, 0, 1*MiB)
	k.bandwidth("fetch.bandwidth", f.Bandwidth)
	between(k, "fetch.max_header", f.MaxHeader, 1*KiB, 16*MiB)
	between(k, "fetch.max_body", f.MaxBody, 1*KiB, 1*GiB)
	between(k, "fetch.spool_above", f.SpoolAbove, spool.HeadBytes, 1*GiB)
	between(k, "fetch.memory_budget", f.MemoryBudget, 1*MiB, 1*TiB)
	between(k, "fetch.max_redirects", f.MaxRedirects, 0, 50)
	between(k, "fetch.resolvers", f.Resolvers, 1, 1024)
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

// FetchOptions returns the options of internal/fetch. version is that of the program.
func (c *Config) FetchOptions(version string) fetch.Options {
	f, o := c.Fetch, fetch.DefaultOptions()
	o.UserAgent = c.UserAgent(version)
	o.From = c.mailAddress()
	o.Headers = parsed(f.Headers, fetch.ParseHeader)
	o.Credentials = parsed(f.Auth, fetch.ParseCredential)
	o.CookieHosts = parsed(f.Cookies, fetch.ParseHostPattern)
	o.ContentTypes = parsed(f.ContentTypes, parseMediaRange)
	o.Timeout, o.HeaderTimeout, o.BodyIdleTimeout, o.ResolveTimeout = f.Timeout, f.HeaderTimeout, f.IdleTimeout,
		f.ResolveTimeout
	o.ConnectTimeout, o.TLSTimeout = f.ConnectTimeout, f.ConnectTimeout
	o.MinRate = int64(f.MinRate)
	o.MaxHeader, o.MaxBody = int64(f.MaxHeader), int64(f.MaxBody)
	o.HTTP2 = f.HTTP2
	o.Family, _ = fetch.ParseFamily(f.Addresses)
	o.Ports = parsed(f.Ports, parsePort)
	o.AllowPrivate = f.AllowPrivate
	o.AllowRanges = parsed(f.AllowAddresses, fetch.ParseRange)
	o.DenyRanges = parsed(f.DenyAddresses, fetch.ParseRange)
	o.Resolver = f.Resolver
	o.Proxy, o.ProxyAuth = f.Proxy, f.ProxyAuth
	o.CAFile = f.TLSCAFile
	o.MaxIdleConns = max(o.MaxIdleConns, c.Crawl.Workers)
	return o
}

// SpoolOptions returns the options of internal/spool. The engine sets the directory of its files.
func (c *Config) SpoolOptions() spool.Options {
	return spool.Options{Above: int64(c.Fetch.SpoolAbove), Budget: int64(c.Fetch.MemoryBudget)}
}
