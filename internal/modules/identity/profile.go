//go:build !core

package identity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Profile is what the public documents of a crawler say.
type Profile struct {
	URL       string // origin of the documents: https://bot.example.net
	Product   string // product token: the name that robots.txt files use
	UserAgent string
	Contact   string // mail address or URL
	Operator  string // who runs it; empty: nobody says so
	Purpose   string // why it crawls; empty: nobody says so
	Addresses []netip.Prefix
	Delay     time.Duration // least time between two requests to a host
	PerHost   int           // requests in flight to a host
	Obeys     bool          // robots.txt files
	Signs     bool
}

// Paths of the documents, below Profile.URL.
const (
	PathPage      = "/"
	PathAddresses = "/addresses.json"
	PathCard      = "/card.json"
	PathDirectory = "/.well-known/http-message-signatures-directory"
	PathReceipts  = "/receipts.jsonl"
)

// Media types of the documents.
const (
	typeDirectory = "application/http-message-signatures-directory+json"
	typeJSON      = "application/json"
	typeLines     = "application/jsonl"
	typePage      = "text/html; charset=utf-8"
	typeText      = "text/plain; charset=utf-8"
)

// ParseAddresses reads addresses and ranges, such as 192.0.2.7 or 2001:db8::/32, sorted and each once.
func ParseAddresses(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			a, err := netip.ParseAddr(text)
			if err != nil || a.Zone() != "" {
				return nil, fmt.Errorf("%q is no address and no range of addresses", text)
			}
			p = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		}
		all = append(all, p.Masked())
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
	})
	return slices.Compact(all), nil
}

// addressList is the list of addresses (draft-illyes-aipref-jafar).
type addressList struct {
	Version  string   `json:"formatVersion"`
	Token    string   `json:"synctoken"`
	Created  string   `json:"creationTime"`
	Prefixes []prefix `json:"prefixes"`
}

type prefix struct {
	V4 string `json:"ipv4Prefix,omitempty"`
	V6 string `json:"ipv6Prefix,omitempty"`
}

// AddressList returns the list of addresses that requests leave from, as JSON. created is when it was last changed; the
// list may be empty.
func (p *Profile) AddressList(created time.Time) ([]byte, error) {
	list := addressList{Version: "1.0", Created: created.UTC().Format(time.RFC3339), Prefixes: []prefix{}}
	for _, a := range p.Addresses {
		if a.Addr().Is4() {
			list.Prefixes = append(list.Prefixes, prefix{V4: a.String()})
		} else {
			list.Prefixes = append(list.Prefixes, prefix{V6: a.String()})
		}
	}
	list.Token = digest([]byte(fmt.Sprint(list.Prefixes)))
	return document(list)
}

// card is the card of a signature agent (draft-meunier-webbotauth-registry): metadata of an OAuth client, and what is
// about crawlers in one object.
type card struct {
	ID       string   `json:"client_id"` // equal to its URL, byte for byte
	Name     string   `json:"client_name"`
	Page     string   `json:"client_uri"`
	Contacts []string `json:"contacts,omitempty"`
	Keys     string   `json:"jwks_uri,omitempty"` // never together with jwks
	Bot      struct {
		UserAgent   string `json:"expected-user-agent"`
		Product     string `json:"rfc9309-product-token"`
		Obeys       bool   `json:"rfc9309-compliance"`
		Trigger     string `json:"trigger"`
		Purpose     string `json:"purpose,omitempty"`
		RateControl string `json:"rate-control"`
		Rate        string `json:"rate-expectation"`
		KnownURLs   []any  `json:"known-urls"`
		Addresses   string `json:"ips_uri"`
	} `json:"web_bot_auth"`
}

// Card returns the card, as JSON.
func (p *Profile) Card() ([]byte, error) {
	c := card{ID: p.URL + PathCard, Name: p.Product, Page: p.URL + PathPage}
	if contact := p.contactURI(); contact != "" {
		c.Contacts = []string{contact}
	}
	if p.Signs {
		c.Keys = p.URL + PathDirectory
	}
	b := &c.Bot
	b.UserAgent, b.Product, b.Obeys, b.Trigger, b.Purpose = p.UserAgent, p.Product, p.Obeys, "crawler", p.Purpose
	b.RateControl = "Crawl-delay in robots.txt; 429 and 503 with Retry-After; RateLimit"
	b.Rate, b.KnownURLs, b.Addresses = p.Rate(), []any{"/robots.txt"}, p.URL+PathAddresses
	return document(c)
}

// Rate says in words how often a host is requested from at most.
func (p *Profile) Rate() string {
	if p.Delay <= 0 {
		return fmt.Sprintf("at most %d requests to a host at a time", max(p.PerHost, 1))
	}
	return fmt.Sprintf("at most one request to a host at a time, and none for at least %s after it", p.Delay)
}

// contactURI returns the contact as a URI.
func (p *Profile) contactURI() string {
	if strings.Contains(p.Contact, "@") && !strings.Contains(p.Contact, ":") {
		return "mailto:" + p.Contact
	}
	return p.Contact
}

// document returns a value as JSON for people and programs.
func document(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}

// Document is a public document as a file.
type Document struct {
	File    string // path below the root of a web server
	Content []byte
}

// Documents returns the documents for a web server of somebody else. Without keys there is no key directory.
func Documents(p *Profile, keys *Keyring, now time.Time) ([]Document, error) {
	site := NewSite(p, keys, func() time.Time { return now })
	var all []Document
	for path, file := range map[string]string{
		PathPage: "index.html", PathAddresses: PathAddresses[1:], PathCard: PathCard[1:],
		PathDirectory: PathDirectory[1:],
	} {
		content, _, err := site.document(path)
		if err != nil {
			return nil, fmt.Errorf("document %s: %w", path, err)
		}
		if content != nil {
			all = append(all, Document{File: file, Content: content})
		}
	}
	slices.SortFunc(all, func(a, b Document) int { return strings.Compare(a.File, b.File) })
	return all, nil
}
