package fetch

import (
	"container/list"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"

	"golang.org/x/net/publicsuffix"

	"github.com/amble-crawler/amble/internal/web/weburl"
)

// The bounds of the cookies that are kept (RFC 6265, section 6.1, requires at least 50 cookies of
// 4096 bytes a host), and of the Cookie field.
const (
	maxCookieHosts  = 10_000
	maxCookies      = 50
	maxCookieBytes  = 4096
	maxCookieHeader = 8 << 10
)

// cookies keeps the cookies of the hosts that CookieHosts names, each host's separately: a cookie
// is never sent to another host, whatever its Domain says. Cookies live as long as the client. It
// is safe for concurrent use; nil keeps none.
type cookies struct {
	hosts []HostPattern

	mu   sync.Mutex // guards what follows; nothing blocks under it
	jars map[string]*list.Element
	lru  *list.List // of *hostJar, the least recently used first
}

// hostJar holds the cookies of one host.
type hostJar struct {
	host string
	jar  *cookiejar.Jar
	kept map[cookieName]struct{}
}

type cookieName struct{ name, domain, path string }

func newCookies(hosts []HostPattern) *cookies {
	if len(hosts) == 0 {
		return nil
	}
	return &cookies{hosts: hosts, jars: make(map[string]*list.Element), lru: list.New()}
}

// wants reports whether cookies of host are kept.
func (c *cookies) wants(host string) bool {
	if c == nil {
		return false
	}
	for _, p := range c.hosts {
		if p.Match(host) {
			return true
		}
	}
	return false
}

// header returns the value of Cookie for a request to u; empty: none.
func (c *cookies) header(u weburl.URL) string {
	if !c.wants(u.Host()) {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.jars[u.Host()]
	if e == nil {
		return ""
	}
	c.lru.MoveToBack(e)
	var b strings.Builder
	for _, cookie := range e.Value.(*hostJar).jar.Cookies(asURL(u)) {
		pair := cookie.Name + "=" + cookie.Value
		if !validHeaderValue(pair) || b.Len()+2+len(pair) > maxCookieHeader {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(pair)
	}
	return b.String()
}

// take keeps the cookies that a response to a request for u sets, and reports whether there are
// any.
func (c *cookies) take(u weburl.URL, h http.Header) (kept bool) {
	lines := h["Set-Cookie"]
	if len(lines) == 0 || !c.wants(u.Host()) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jarLocked(u.Host())
	if j == nil {
		return false
	}
	for _, line := range lines[:min(len(lines), maxCookies)] {
		cookie, err := http.ParseSetCookie(line)
		if err != nil || len(line) > maxCookieBytes {
			continue
		}
		name := cookieName{cookie.Name, cookie.Domain, cookie.Path}
		if _, known := j.kept[name]; !known && len(j.kept) == maxCookies {
			continue
		}
		j.kept[name] = struct{}{}
		j.jar.SetCookies(asURL(u), []*http.Cookie{cookie})
		kept = true
	}
	return kept
}

// jarLocked returns the jar of a host, and makes it if there is none.
func (c *cookies) jarLocked(host string) *hostJar {
	if e := c.jars[host]; e != nil {
		c.lru.MoveToBack(e)
		return e.Value.(*hostJar)
	}
	jar, err := cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List})
	if err != nil {
		return nil
	}
	if c.lru.Len() >= maxCookieHosts {
		oldest := c.lru.Remove(c.lru.Front()).(*hostJar)
		delete(c.jars, oldest.host)
	}
	j := &hostJar{host: strings.Clone(host), jar: jar, kept: make(map[cookieName]struct{})}
	c.jars[j.host] = c.lru.PushBack(j)
	return j
}
