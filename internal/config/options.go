package config

import (
	"net/mail"
	"strings"

	"github.com/amble-crawler/amble/robots"
)

// UserAgent is the User-Agent header: fetch.user_agent, or else the product token, the version and the contact,
// such as "amble/1.0 (+https://example.org/crawler)".
func (c *Config) UserAgent(version string) string {
	if c.Fetch.UserAgent != "" {
		return c.Fetch.UserAgent
	}
	agent := c.Robots.ProductToken + "/" + version
	if c.Fetch.Contact != "" {
		agent += " (+" + c.Fetch.Contact + ")"
	}
	return agent
}

// mailAddress is the contact where it is one, without a name or a scheme; else "".
func (c *Config) mailAddress() string {
	address, err := mail.ParseAddress(strings.TrimPrefix(c.Fetch.Contact, "mailto:"))
	if err != nil {
		return ""
	}
	return address.Address
}

// ProductTokens are the names looked for in robots.txt: the first that a file has a group for counts.
func (c *Config) ProductTokens() []string {
	return append([]string{c.Robots.ProductToken}, c.Robots.FallbackTokens...)
}

// RobotsOptions are the options of robots. The lifetimes are those of RFC 9309; no setting changes them.
func (c *Config) RobotsOptions() robots.Options {
	o := robots.DefaultOptions()
	o.ForbiddenDenies = c.Robots.ForbiddenDenies
	return o
}
