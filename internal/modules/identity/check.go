//go:build !core

package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Finding is one line of a check.
type Finding struct {
	Subject string `json:"subject"` // what was checked
	OK      bool   `json:"ok"`
	Text    string `json:"text"`
}

// Checker checks whether others can verify a crawler.
type Checker struct {
	Profile *Profile
	Keys    *Keyring
	Client  *http.Client // that follows no redirects, and has a timeout
	Names   interface {
		LookupAddr(ctx context.Context, address string) ([]string, error)
		LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	}
	Local []netip.Addr // addresses of this machine
	Now   time.Time
}

// maxDocument bounds a document that is fetched, in bytes.
const maxDocument = 1 << 20

// maxChecked bounds the addresses whose names are looked up.
const maxChecked = 256

// Run checks everything, in the order of the documents: one finding for each thing.
func (c *Checker) Run(ctx context.Context) []Finding {
	found := []Finding{c.page(ctx), c.list(ctx), c.card(ctx)}
	if c.Profile.Signs {
		found = append(found, c.key(), c.directory(ctx))
	}
	for i, p := range c.Profile.Addresses {
		if i == maxChecked {
			break
		}
		found = append(found, c.name(ctx, p))
	}
	return append(found, c.complete())
}

func bad(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, Text: fmt.Sprintf(format, args...)}
}

func good(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, OK: true, Text: fmt.Sprintf(format, args...)}
}

// get fetches a document as a verifier does.
func (c *Checker) get(ctx context.Context, path string) (body []byte, h http.Header, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Profile.URL+path, nil)
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("User-Agent", c.Profile.UserAgent)
	resp, err := c.Client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("%s answers with status %d, and not 200", c.Profile.URL+path, resp.StatusCode)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument))
	return body, resp.Header, err
}

func (c *Checker) page(ctx context.Context) Finding {
	const subject = "page"
	body, _, err := c.get(ctx, PathPage)
	switch {
	case err != nil:
		return bad(subject, "cannot be fetched: %v", err)
	case !bytes.Contains(body, []byte(c.Profile.Product)):
		return bad(subject, "%s does not name %s", c.Profile.URL+PathPage, c.Profile.Product)
	}
	return good(subject, "%s answers", c.Profile.URL+PathPage)
}

func (c *Checker) list(ctx context.Context) Finding {
	const subject = "address list"
	body, _, err := c.get(ctx, PathAddresses)
	if err != nil {
		return bad(subject, "cannot be fetched: %v", err)
	}
	var list addressList
	if err := json.Unmarshal(body, &list); err != nil {
		return bad(subject, "%s is no list of addresses: %v", c.Profile.URL+PathAddresses, err)
	}
	var texts []string
	for _, p := range list.Prefixes {
		texts = append(texts, p.V4+p.V6)
	}
	published, err := ParseAddresses(texts)
	if err != nil {
		return bad(subject, "%s: %v", c.Profile.URL+PathAddresses, err)
	}
	for _, p := range c.Profile.Addresses {
		if !slices.Contains(published, p) {
			return bad(subject, "%s lacks %s of identity.addresses: publish it again", c.Profile.URL+PathAddresses, p)
		}
	}
	for _, p := range published {
		if !slices.Contains(c.Profile.Addresses, p) {
			return bad(subject, "%s has %s, which identity.addresses lacks: publish it again, or add it",
				c.Profile.URL+PathAddresses, p)
		}
	}
	return good(subject, "%d ranges, as in identity.addresses", len(published))
}

func (c *Checker) card(ctx context.Context) Finding {
	const subject = "card"
	body, h, err := c.get(ctx, PathCard)
	if err != nil {
		return bad(subject, "cannot be fetched: %v", err)
	}
	var got card
	if err := json.Unmarshal(body, &got); err != nil {
		return bad(subject, "%s is no card: %v", c.Profile.URL+PathCard, err)
	}
	switch want := c.Profile.URL + PathCard; {
	case got.ID != want:
		return bad(subject, "its client_id is %q, and must be its URL %s, byte for byte", got.ID, want)
	case !strings.HasPrefix(h.Get("Content-Type"), typeJSON):
		return bad(subject, "its media type is %q, and should be %s", h.Get("Content-Type"), typeJSON)
	}
	return good(subject, "%s answers", got.ID)
}

// key looks for a key to sign with.
func (c *Checker) key() Finding {
	k, err := c.Keys.Signing(c.Now)
	if err != nil {
		return bad("key", "%v: amble identity new makes one", err)
	}
	return good("key", "%s, in use since %s", k.ID, k.From.UTC().Format(time.DateOnly))
}

func (c *Checker) directory(ctx context.Context) Finding {
	const subject = "key directory"
	body, h, err := c.get(ctx, PathDirectory)
	if err != nil {
		return bad(subject, "cannot be fetched: %v", err)
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return bad(subject, "%s is no set of keys: %v", c.Profile.URL+PathDirectory, err)
	}
	for _, k := range c.Keys.Published(c.Now) {
		if !slices.ContainsFunc(set.Keys, func(j jwk) bool { return j.X == encode(k.public) }) {
			return bad(subject, "%s lacks the key %s", c.Profile.URL+PathDirectory, k.ID)
		}
	}
	switch {
	case h.Get("Content-Type") != typeDirectory:
		return bad(subject, "its media type is %q, and must be %s", h.Get("Content-Type"), typeDirectory)
	case h.Get("Signature") == "":
		return good(subject, "%d keys; it is not signed, so verifiers believe its TLS certificate alone", len(set.Keys))
	}
	return good(subject, "%d keys, signed", len(set.Keys))
}

// name checks the reverse name of an address, and that the name leads back.
func (c *Checker) name(ctx context.Context, p netip.Prefix) Finding {
	subject := p.String()
	if !p.IsSingleIP() {
		return good(subject, "a range: its names are not looked up")
	}
	names, err := c.Names.LookupAddr(ctx, p.Addr().String())
	if err != nil || len(names) == 0 {
		return bad(subject, "has no reverse name, by which some sites verify crawlers: ask its provider for one")
	}
	for _, name := range names {
		addresses, err := c.Names.LookupNetIP(ctx, "ip", name)
		if err == nil && slices.ContainsFunc(addresses, func(a netip.Addr) bool { return a.Unmap() == p.Addr() }) {
			return good(subject, "is %s, and that name is %s", strings.TrimSuffix(name, "."), p.Addr())
		}
	}
	return bad(subject, "has the reverse name %s, which does not lead back to it", strings.TrimSuffix(names[0], "."))
}

// complete looks for public addresses of this machine that the list lacks.
func (c *Checker) complete() Finding {
	const subject = "addresses of this machine"
	var public int
	for _, a := range c.Local {
		a = a.Unmap().WithZone("")
		if !a.IsGlobalUnicast() || a.IsPrivate() {
			continue
		}
		public++
		if !slices.ContainsFunc(c.Profile.Addresses, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return bad(subject, "%s is not in identity.addresses, and requests may leave from it", a)
		}
	}
	switch {
	case len(c.Profile.Addresses) == 0:
		return bad(subject, "identity.addresses is empty: name the addresses that requests leave from")
	case public == 0:
		return good(subject, "it has no public one, so requests leave through a router or proxy: its addresses have "+
			"to be in identity.addresses")
	}
	return good(subject, "all %d public ones are in identity.addresses", public)
}

// LocalAddresses returns the addresses of this machine.
func LocalAddresses() (all []netip.Addr, err error) {
	list, err := net.InterfaceAddrs()
	for _, a := range list {
		if n, is := a.(*net.IPNet); is {
			if address, ok := netip.AddrFromSlice(n.IP); ok {
				all = append(all, address)
			}
		}
	}
	return all, err
}
