package config

import (
	"cmp"
	"fmt"
	"math"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/amble-crawler/amble/internal/archive"
	"github.com/amble-crawler/amble/internal/formats"
	"github.com/amble-crawler/amble/internal/weburl"
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
	k.numbers()
	k.choices()
	k.scope()
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
		Read:    setting{key: key}.show(item),
		Message: message,
	})
}

// between rejects a value outside of least and most.
func between[T cmp.Ordered](k *checker, key string, value, least, most T) {
	if value < least || value > most {
		k.reject(key, "want "+format(least)+" to "+format(most))
	}
}

// bandwidth rejects an invalid limit of bytes a second.
func (k *checker) bandwidth(key string, value ByteSize) {
	if !isBandwidth(value) {
		k.reject(key, wantBandwidth)
	}
}

const wantBandwidth = "want 0, or 1KiB to 1TiB"

func isBandwidth(b ByteSize) bool { return b == 0 || b >= KiB && b <= TiB }

const (
	week = 7 * 24 * time.Hour
	year = 365 * 24 * time.Hour
)

func (k *checker) numbers() {
	c := k.c
	between(k, "crawl.workers", c.Crawl.Workers, 0, 4096)
	if r := c.Crawl.MaxRate; r != 0 && !(r >= 0.001 && r <= 100_000) {
		k.reject("crawl.max_rate", "want 0, or 0.001 to 100000")
	}
	between(k, "crawl.give_up_after", c.Crawl.GiveUpAfter, 0, year)
	between(k, "crawl.shutdown_grace", c.Crawl.ShutdownGrace, 0, time.Hour)
	between(k, "crawl.max_pages", c.Crawl.MaxPages, 0, 1e15)
	between(k, "crawl.max_depth", c.Crawl.MaxDepth, 0, 65535)
	k.limits()
	k.audit()
	k.lists()
	k.urls()
	k.politeness()
	k.recrawl()
	k.consent()
	k.fetch()
	between(k, "retry.max_attempts", c.Retry.MaxAttempts, 1, 100)
	between(k, "retry.delay", c.Retry.Delay, time.Millisecond, 24*time.Hour)
	k.outputNumbers()
}

// limits checks the limits of a host and the traps.
func (k *checker) limits() {
	l, t, s := k.c.Limits, k.c.Traps, k.c.Storage
	between(k, "limits.host_urls", l.HostURLs, 0, math.MaxInt32)
	between(k, "limits.host_pages", l.HostPages, 0, math.MaxInt32)
	between(k, "limits.domain_pages", l.DomainPages, 0, math.MaxInt32)
	between(k, "limits.session", l.Session, 0, 1e9)
	between(k, "traps.path_depth", t.PathDepth, 0, weburl.MaxLength)
	between(k, "traps.repeated_segments", t.RepeatedSegments, 0, weburl.MaxLength)
	between(k, "traps.query_parameters", t.QueryParameters, 0, weburl.MaxLength)
	between(k, "traps.queries_per_path", t.QueriesPerPath, 0, math.MaxInt32)
	between(k, "traps.same_digest", t.SameDigest, 0, math.MaxInt32)
	between(k, "traps.domain_hosts", t.DomainHosts, 0, math.MaxInt32)
	if s.MaxSize != 0 && (s.MaxSize < 16*MiB || s.MaxSize > 1024*TiB) {
		k.reject("storage.max_size", "want 0, or 16MiB to 1024TiB")
	}
	between(k, "storage.min_free", s.MinFree, 0, 1024*TiB)
	if every := s.BackupEvery; every != 0 && (every < time.Minute || every > 366*24*time.Hour) {
		k.reject("storage.backup_every", "want 0s, or 1m to 8784h")
	}
	for i, name := range t.SessionNames {
		if !isParameter(name) {
			k.rejectItem("traps.session_names", i, name, "want the name of a parameter of a URL, such as visitid, "+
				"or a prefix and a star")
		}
	}
}

// choices checks the settings that are one word out of a few.
func (k *checker) choices() {
	k.oneOf("scope.mode", k.c.Scope.Mode)
	between(k, "traps.maze_pages", k.c.Traps.MazePages, 0, 1_000_000)
	k.oneOf("traps.expensive", k.c.Traps.Expensive)
	k.oneOf("log.level", k.c.Log.Level)
	k.oneOf("log.format", k.c.Log.Format)
	if k.c.DataDir == "" {
		k.reject("data_dir", "want a directory for the database, such as ./data")
	}
	k.outputChoices()
}

// choices are the values of settings that are one word, or a list of words, out of a few.
func choices() map[string][]string {
	return map[string][]string{
		"scope.mode":           {"host", "domain", "prefix", "any"},
		"traps.expensive":      {"skip", "last", "crawl"},
		"fetch.addresses":      {"ipv4-first", "ipv6-first", "ipv4", "ipv6"},
		"recrawl.policy":       policies(),
		"identity.sign":        {"always", "asked", "never"},
		"output.format":        formats.Names(),
		"output.compress":      {archive.CompressNone, archive.CompressGzip, archive.CompressZstd},
		"output.warc_compress": {archive.CompressGzip, archive.CompressZstd},
		"log.level":            {"debug", "info", "warn", "error"},
		"log.format":           {"text", "json"},
	}
}

// Choices returns the values that a setting may have, if they are few; otherwise none.
func Choices(key string) []string {
	if s, known := newVocabulary().byKey[key]; known && s.typ.Kind() == reflect.Bool {
		return []string{"true", "false"}
	}
	return choices()[key]
}

func (k *checker) oneOf(key, value string) {
	if allowed := choices()[key]; !slices.Contains(allowed, value) {
		k.reject(key, "want one of "+strings.Join(allowed, ", "))
	}
}

func (k *checker) scope() {
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
	k.fetchTexts()
	k.identity()
	k.server()
	k.urlfrontier()
	k.cluster()
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
	k.serviceExposure()
	k.nodes()
}

// unsure reports whether the value of a setting was found invalid, so that it cannot be compared
// with another.
func (k *checker) unsure(key string) bool { return k.r.failed[key] }

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
	if agent != "" && !strings.Contains(agent, token) {
		warn("fetch.user_agent", "does not contain robots.product_token, %s: operators cannot tell which group of "+
			"their robots.txt applies (RFC 9309 section 2.2.1)", c.Robots.ProductToken)
	}
	return list
}
