package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Header is a field that every request carries.
type Header struct{ Name, Value string }

// ParseHeader reads "Name: value". It refuses fields that the protocol or another option fills in.
func ParseHeader(text string) (Header, error) {
	h, err := splitHeader(text)
	if err != nil {
		return Header{}, err
	}
	return h, h.validate()
}

func splitHeader(text string) (Header, error) {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		return Header{}, errors.New("want Name: value, such as Accept-Language: en")
	}
	return Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}, nil
}

func (h Header) validate() error {
	switch {
	case !httpguts.ValidHeaderFieldName(h.Name):
		return fmt.Errorf("%q is no name of a header field", h.Name)
	case !validHeaderValue(h.Value):
		return fmt.Errorf("header %s: only printable ASCII can be sent", h.Name)
	case slices.Contains(ownHeaders(), http.CanonicalHeaderKey(h.Name)):
		return fmt.Errorf("header %s is the crawler's own", h.Name)
	}
	return nil
}

// ownHeaders are the fields that an option or the protocol fills in.
func ownHeaders() []string {
	return []string{"Accept-Encoding", "Authorization", "Connection", "Content-Length", "Cookie", "Expect",
		"From", "Host",
		"If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive",
		"Proxy-Authorization", "Proxy-Connection", "Range", "Signature",
		"Signature-Agent", "Signature-Input", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"User-Agent"}
}

// field is one line of a request header.
type field struct {
	name, value string
	secret      bool // is never stored
}

// fixedFields are the header fields that every request carries.
func fixedFields(o Options) []field {
	fs := []field{{name: "User-Agent", value: o.UserAgent}}
	if o.From != "" {
		fs = append(fs, field{name: "From", value: o.From})
	}
	accepts := func(h Header) bool { return strings.EqualFold(h.Name, "Accept") }
	if o.Accept != "" && !slices.ContainsFunc(o.Headers, accepts) {
		fs = append(fs, field{name: "Accept", value: o.Accept})
	}
	fs = append(fs, field{name: "Accept-Encoding", value: acceptEncoding})
	for _, h := range o.Headers {
		fs = append(fs, field{name: h.Name, value: h.Value})
	}
	return fs
}

// PlainHeader returns the header with which another program makes a request in place of this client. It has no
// secrets, no cookies, and no Accept-Encoding, which depends on what the program can decode.
func (c *Client) PlainHeader(r Request) http.Header {
	header := make(http.Header, len(c.fixed)+3)
	for _, f := range c.plain(r) {
		if f.name != "Accept-Encoding" {
			header.Add(f.name, f.value)
		}
	}
	return header
}

// plain returns the fields of a request that are no secret, without Host.
func (c *Client) plain(r Request) []field {
	fs := append(make([]field, 0, len(c.fixed)+6), c.fixed...)
	for _, f := range []field{
		{name: "If-None-Match", value: r.ETag}, {name: "If-Modified-Since", value: r.LastModified},
		{name: "Referer", value: r.Referer},
	} {
		if f.value != "" && validHeaderValue(f.value) {
			fs = append(fs, f)
		}
	}
	return fs
}

// fields returns the header of a request, without Host.
func (c *Client) fields(r Request) []field {
	fs := c.plain(r)
	if c.proxy.forwards(r.URL.Scheme()) && c.proxy.authorization != "" {
		fs = append(fs, field{name: "Proxy-Authorization", value: c.proxy.authorization, secret: true})
	}
	if f, ok := c.credential(r.URL); ok {
		fs = append(fs, f)
	}
	if value := c.cookies.header(r.URL); value != "" {
		fs = append(fs, field{name: "Cookie", value: value})
	}
	return fs
}
