package config

import (
	"fmt"
	"strings"
)

// Warnings are the settings that are allowed but ought to be known to whoever starts a crawl with them, one sentence each.
func (c *Config) Warnings() []string {
	var list []string
	warn := func(key, format string, args ...any) {
		list = append(list, fmt.Sprintf("%s: %s %s", c.Source(key), key, fmt.Sprintf(format, args...)))
	}
	if !c.Robots.Obey {
		warn("robots.obey", "is false: what robots.txt disallows is fetched all the same; only its Crawl-delay is honoured")
	}
	if !c.Robots.ObeyNoFollow {
		warn("robots.obey_nofollow", "is false: links are followed although rel=nofollow, the robots directives of a page or its X-Robots-Tag ask not to")
	}
	if c.Politeness.Delay == 0 {
		warn("politeness.delay", "is 0s: hosts are asked without a pause unless their robots.txt has a Crawl-delay; meant for servers of your own")
	}
	if c.Fetch.AllowPrivate {
		warn("fetch.allow_private", "is true: links may lead the crawler to loopback and private addresses")
	}
	if agent := c.Fetch.UserAgent; c.Fetch.Contact == "" && !strings.Contains(agent, "://") && !strings.Contains(agent, "@") {
		warn("fetch.contact", "is empty: operators of the sites cannot reach you; set it to a URL or a mail address")
	}
	agent, token := strings.ToLower(c.Fetch.UserAgent), strings.ToLower(c.Robots.ProductToken)
	if agent != "" && !strings.Contains(agent, token) {
		warn("fetch.user_agent", "does not hold robots.product_token, %s: operators cannot tell which group of their robots.txt is meant (RFC 9309 section 2.2.1)", c.Robots.ProductToken)
	}
	return list
}
