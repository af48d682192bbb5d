package config

import (
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/amble-crawler/amble/internal/output/formats"
)

// checker checks the values of a Config. It leaves out settings whose value could not be read:
// these were reported already.
type checker struct {
	c     *Config
	words *vocabulary
	r     *report
}

// check reports every invalid value, and every invalid pair of values.
func (c *Config) check(r *report) {
	k := &checker{c: c, words: newVocabulary(), r: r}
	k.table()
	k.scope()
	k.urls()
	k.traps()
	k.ofModules()
	k.politeness()
	k.recrawl()
	k.consent()
	k.fetchTexts()
	k.output()
	k.items()
	k.network()
	k.pairs()
}

// reject reports the value of one setting at its source.
func (k *checker) reject(key, message string) {
	if !k.unsure(key) {
		k.r.add(k.problem(key, message))
	}
}

// conflict reports a value that is valid alone but not together with another.
func (k *checker) conflict(key, message string) {
	if !k.unsure(key) {
		k.r.problems = append(k.r.problems, k.problem(key, message))
	}
}

func (k *checker) problem(key, message string) Problem {
	s, o := k.words.byKey[key], k.c.origins[key]
	text := o.text
	if text == "" {
		text = format(s.value(k.c))
	}
	read := text
	if s.typ.Kind() == reflect.String {
		read = s.show(text)
	}
	return Problem{Source: o.Source, Key: key, Read: read, Message: message}
}

// rejectItem reports one item of a list.
func (k *checker) rejectItem(key string, i int, item, message string) {
	k.r.problems = append(k.r.problems, Problem{
		Source:  k.c.origins[key].item(i),
		Key:     key,
		Read:    k.words.byKey[key].show(item),
		Message: message,
	})
}

// Choices returns the values that a setting may have, if they are few; otherwise none.
func Choices(key string) []string {
	s, known := newVocabulary().byKey[key]
	switch {
	case known && s.typ.Kind() == reflect.Bool:
		return []string{"true", "false"}
	case key == "fetch.addresses":
		return []string{"ipv4-first", "ipv6-first", "ipv4", "ipv6"}
	case key == "recrawl.policy":
		return policies()
	case key == "output.format":
		return formats.Names()
	}
	return strings.Fields(s.tag.Get("of"))
}

// traps checks the names of session ids.
func (k *checker) traps() {
	for i, name := range k.c.Traps.SessionNames {
		if !isParameter(name) {
			k.rejectItem("traps.session_names", i, name, "want the name of a parameter of a URL, such as visitid, "+
				"or a prefix and a star")
		}
	}
}

func (k *checker) oneOf(key, value string) {
	if allowed := Choices(key); !slices.Contains(allowed, value) {
		k.reject(key, "want one of "+strings.Join(allowed, ", "))
	}
}

func (k *checker) scope() {
	if k.c.DataDir == "" {
		k.reject("data_dir", "want a directory for the database, such as ./data")
	}
	k.patterns("scope.include", k.c.Scope.Include)
	k.patterns("scope.exclude", k.c.Scope.Exclude)
}

func (k *checker) patterns(key string, patterns []string) {
	for i, pattern := range patterns {
		if _, err := regexp.Compile(pattern); err != nil {
			k.rejectItem(key, i, pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: ")+
				"; want a regular expression of Go (RE2)")
		}
	}
}

// network checks what other machines can see, and what the API listens to.
func (k *checker) network() {
	c := k.c
	const wantToken = "want letters, - and _ only, such as amble (RFC 9309 section 2.2.1)"
	if !isProductToken(c.Robots.ProductToken) {
		k.reject("robots.product_token", wantToken)
	}
	for i, token := range c.Robots.FallbackTokens {
		if !isProductToken(token) {
			k.rejectItem("robots.fallback_tokens", i, token, wantToken)
		}
	}
	if len(c.Robots.FallbackTokens) > maxFallbackTokens {
		k.reject("robots.fallback_tokens", fmt.Sprintf("want at most %d names", maxFallbackTokens))
	}
	k.identity()
	k.server()
	checkModules(k)
}

// pairs checks settings that are valid alone.
func (k *checker) pairs() {
	p := k.c.Politeness
	if p.PerHost > 1 && p.Delay > 0 && !k.unsure("politeness.delay") {
		k.conflict("politeness.per_host", fmt.Sprintf(
			"more than 1 needs politeness.delay: 0s, and it is %s: a host with a delay gets one request at a time",
			format(p.Delay)))
	} else if p.PerHost > 1 && p.AdaptiveFactor > 0 && !k.unsure("politeness.adaptive_factor") {
		k.conflict("politeness.per_host", fmt.Sprintf(
			"more than 1 needs politeness.adaptive_factor: 0, and it is %s: a host with a delay gets one request at "+
				"a time", format(p.AdaptiveFactor)))
	}
	if p.PerHost > p.PerIP && !k.unsure("politeness.per_ip") {
		k.conflict("politeness.per_host", fmt.Sprintf(
			"is more than politeness.per_ip, %d, so it can never be reached; want at most that", p.PerIP))
	}
	k.exposure()
	checkModulesTogether(k)
}

// unsure reports whether the value of a setting was found invalid, so that it cannot be compared
// with another.
func (k *checker) unsure(key string) bool { return k.r.failed[key] }

// ownName is the product token of all who have set none.
const ownName = "amble"

// maxFallbackTokens bounds the names that every robots.txt is searched for.
const maxFallbackTokens = 8

func isProductToken(token string) bool {
	return token != "" && len(token) <= 64 && strings.Trim(strings.ToLower(token), "abcdefghijklmnopqrstuvwxyz-_") == ""
}

// isParameter reports whether text can be the name of a parameter, or a prefix of more than one
// letter.
func isParameter(text string) bool {
	name, begin := strings.CutSuffix(text, "*")
	return name != "" && len(name) <= 64 && !(begin && len(name) < 3) &&
		!strings.ContainsFunc(name, func(c rune) bool {
			return c <= ' ' || c > '~' ||
				strings.ContainsRune("*=&;?/#", c)
		})
}

func isHeaderText(text string) bool {
	return len(text) <= 256 && !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}

func isContact(contact string) bool {
	if !isHeaderText(contact) {
		return false
	}
	if strings.Contains(contact, "://") {
		u, err := url.Parse(contact)
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
	}
	address, err := mail.ParseAddress(strings.TrimPrefix(contact, "mailto:"))
	return err == nil && address.Name == ""
}

func isResolver(address string) bool {
	parsed, err := netip.ParseAddrPort(address)
	return err == nil && parsed.Port() != 0
}

// Warnings returns a sentence for each setting that is allowed but that the operator should know
// of.
func (c *Config) Warnings() []string {
	var list []string
	warn := func(key, format string, args ...any) {
		list = append(list, fmt.Sprintf("%s: %s %s", c.Source(key), key, fmt.Sprintf(format, args...)))
	}
	if !c.Robots.Obey {
		warn("robots.obey", "is false: disallowed URLs are fetched; only the Crawl-delay is honoured")
	}
	if !c.Robots.ObeyNoFollow {
		warn("robots.obey_nofollow", "is false: links are followed despite rel=nofollow, the robots directives of a "+
			"page and its X-Robots-Tag")
	}
	if !c.Politeness.Walls {
		warn("politeness.walls", "is false: a host that refuses every page gets a request for each URL of its queue")
	}
	if c.Politeness.Delay == 0 {
		warn("politeness.delay", "is 0s: requests to a host have no pause between them unless its robots.txt has a "+
			"Crawl-delay; meant for servers of your own")
	}
	if u := c.URLFrontier; u.Listen != "" && !u.Robots {
		warn("urlfrontier.robots", "is false: amble reads no robots.txt; the clients of URLFrontier have to")
	}
	u := c.URLFrontier
	if u.Plaintext && isListenAddress(u.Listen) && !isLoopback(u.Listen) && (u.Token == "" || u.TLSCert == "") {
		warn("urlfrontier.plaintext", "is true: whoever reaches %s can read and change the crawls", u.Listen)
	}
	if c.Fetch.AllowPrivate {
		warn("fetch.allow_private", "is true: links may lead the crawler to loopback and private addresses")
	}
	if agent := c.Fetch.UserAgent; c.Fetch.Contact == "" && !strings.Contains(agent, "://") &&
		!strings.Contains(agent, "@") {
		warn("fetch.contact", "is empty: operators of the sites cannot reach you; set it to a URL or a mail address")
	}
	agent, token := strings.ToLower(c.Fetch.UserAgent), strings.ToLower(c.Robots.ProductToken)
	if token == ownName && !c.Fetch.AllowPrivate {
		warn("robots.product_token", "is %s, as of everybody who runs this program: operators cannot tell your "+
			"crawler from others; set a name of your own. Groups of robots.txt for %[1]s hold for it too", ownName)
	}
	if agent != "" && !strings.Contains(agent, token) {
		warn("fetch.user_agent", "does not contain robots.product_token, %s: operators cannot tell which group of "+
			"their robots.txt applies (RFC 9309 section 2.2.1)", c.Robots.ProductToken)
	}
	return list
}
