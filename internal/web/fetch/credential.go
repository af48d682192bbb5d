package fetch

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// Credential is a header field for the requests to some hosts. A redirect to another host goes
// without it.
type Credential struct {
	hosts  HostPattern
	scheme string
	port   uint16
	field  field
}

// errCredential explains the form of a credential.
var errCredential = errors.New("want HOST basic USER:PASSWORD, HOST bearer TOKEN or HOST header NAME: VALUE, " +
	"where HOST is example.com or *.example.com for https, or begins with http:// for a host without it")

// ParseCredential reads a credential in one of these forms:
//
//	HOST basic USER:PASSWORD
//	HOST bearer TOKEN
//	HOST header NAME: VALUE
//
// HOST is a [HostPattern], for https on its usual port. Where it begins with
// "http://", or ends with a port, it is for that scheme and that port. An error
// does not repeat the text.
func ParseCredential(text string) (Credential, error) {
	host, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	kind, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	c := Credential{scheme: "https"}
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		return Credential{}, errCredential
	case kind == "basic" && strings.Contains(value, ":"):
		c.field = field{"Authorization", basic(value), true}
	case kind == "bearer":
		c.field = field{"Authorization", "Bearer " + value, true}
	case kind == "header":
		h, err := splitHeader(value)
		if err == nil && !strings.EqualFold(h.Name, "Authorization") {
			err = h.validate()
		}
		if err != nil {
			return Credential{}, errCredential
		}
		c.field = field{h.Name, h.Value, true}
	default:
		return Credential{}, errCredential
	}
	if !validHeaderValue(c.field.value) {
		return Credential{}, errCredential
	}
	return c, c.setHosts(host)
}

func (c *Credential) setHosts(host string) error {
	if scheme, rest, ok := strings.Cut(host, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return errCredential
		}
		c.scheme, host = scheme, strings.TrimSuffix(rest, "/")
	}
	c.port = 443
	if c.scheme == "http" {
		c.port = 80
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		port, err := strconv.ParseUint(host[i+1:], 10, 16)
		if err != nil || port == 0 {
			return errCredential
		}
		c.port, host = uint16(port), host[:i]
	}
	var err error
	if c.hosts, err = ParseHostPattern(host); err != nil || c.hosts == "*" {
		return errCredential
	}
	return nil
}

// basic returns the value of Authorization for user:password (RFC 7617).
func basic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
}

// Matches reports whether the credential is for u.
func (c *Credential) Matches(u weburl.URL) bool {
	return u.Scheme() == c.scheme && u.Port() == c.port && c.hosts.Match(u.Host())
}

// String names the hosts and hides the secret.
func (c Credential) String() string {
	return fmt.Sprintf("%s://%s:%d %s: (not shown)", c.scheme, c.hosts, c.port, c.field.name)
}

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// credential returns the field of the first credential that matches u.
func (c *Client) credential(u weburl.URL) (field, bool) {
	for i := range c.o.Credentials {
		if c.o.Credentials[i].Matches(u) {
			return c.o.Credentials[i].field, true
		}
	}
	return field{}, false
}

// asURL returns u as a net/url URL, for libraries that need one.
func asURL(u weburl.URL) *url.URL {
	path, query, _ := strings.Cut(u.RequestURI(), "?")
	return &url.URL{Scheme: u.Scheme(), Host: u.HostPort(), Path: path, RawQuery: query}
}
