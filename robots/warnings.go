//go:build !core

package robots

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WarningKind is the kind of a warning.
type WarningKind uint8

const (
	WarnIgnored   WarningKind = iota // the line is no record
	WarnUnknown                      // the key has no meaning here
	WarnMisspelt                     // the line was read, although its key or separator is misspelt
	WarnOutside                      // a rule or extension before the first user-agent line
	WarnAgent                        // a name that no crawler has, or one whose beginning alone counts
	WarnPattern                      // a pattern that no URL matches
	WarnValue                        // a value that cannot be used
	WarnSitemap                      // a sitemap that is not absolute, or not http or https
	WarnNoRules                      // a group without rules: it allows everything
	WarnEncoding                     // not plain UTF-8: a byte order mark, UTF-16, other octets
	WarnCut                          // the file is too long
	warningsCount                    // not a kind
)

var warningNames = [warningsCount]string{
	"ignored", "unknown key", "misspelt", "outside of groups", "user-agent", "pattern", "value", "sitemap", "no rules",
	"encoding", "too long",
}

// String returns the name used in reports.
func (k WarningKind) String() string {
	if k < warningsCount {
		return warningNames[k]
	}
	return "warning"
}

// Warning is a defect of a file that its author would want to know.
type Warning struct {
	Line int // 0: the file as a whole
	Kind WarningKind
	Text string // for people, without the line number
}

const maxWarnings = 1000

func (p *parser) warn(kind WarningKind, format string, args ...any) {
	if len(p.file.Warnings) >= maxWarnings {
		p.file.Omitted++
		return
	}
	p.file.Warnings = append(p.file.Warnings, Warning{p.line, kind, fmt.Sprintf(format, args...)})
}

// quote shows octets of a file: bounded, and without what would disturb a terminal.
func quote(b []byte) string {
	const most = 80
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + "..."
	}
	return strconv.QuoteToASCII(string(b))
}

var keyNames = [...]string{
	keyUnknown:   "unknown",
	keyUserAgent: "User-agent", keyAllow: "Allow", keyDisallow: "Disallow", keySitemap: "Sitemap",
	keyCrawlDelay:  "Crawl-delay",
	keyRequestRate: "Request-rate", keyVisitTime: "Visit-time", keyContentSignal: "Content-Signal",
	keyContentUsage: "Content-Usage", keyHost: "Host", keyCleanParam: "Clean-param",
	keyLicense: "License",
}

// String returns the key as it should be written.
func (k key) String() string {
	return keyNames[k]
}

func (p *parser) encoding(enc encoding) {
	switch enc {
	case encodingBOM:
		p.warn(WarnEncoding, "the file starts with a byte order mark: older crawlers miss its first line")
	case encodingUTF16:
		p.warn(WarnEncoding, "the file is UTF-16, and must be UTF-8: most crawlers cannot read it")
	}
}

// octets warns of octets that give a line another meaning than its author sees.
func (p *parser) octets(line []byte) {
	switch {
	case bytes.HasPrefix(line, []byte("\xEF\xBB\xBF")):
		p.warn(WarnEncoding, "a byte order mark inside the file: the line has another meaning than it shows")
	case bytes.IndexByte(line, 0) >= 0:
		p.warn(WarnEncoding, "the line holds octets of value zero")
	case !utf8.Valid(line):
		p.warn(WarnEncoding, "the line is not UTF-8: its octets are compared as they are")
	}
}

func (p *parser) misspelled(word []byte, k key, colon bool) {
	if !colon {
		p.warn(WarnMisspelt, "no colon: read as %s, but not every crawler does", k)
		return
	}
	p.warn(WarnMisspelt, "%s was read as %s, but not every crawler does", quote(word), k)
}

// checkAgent warns of a name that has another meaning than its author may think.
func (p *parser) checkAgent(value []byte, name string) {
	switch {
	case name == "*" && len(value) > 1:
		p.warn(WarnAgent, "the text after the star is ignored: %s", quote(value))
	case name == "*" || len(name) == len(value) && name != "":
	case len(value) == 0:
		p.warn(WarnAgent, "no name: this line adds no crawler to the group")
	case name == "":
		p.warn(WarnAgent, "%s is no product token (letters, - and _): no crawler that follows RFC 9309 has this name",
			quote(value))
	default:
		p.warn(WarnAgent, "only %q of %s counts", name, quote(value))
	}
}

// withoutRules warns of a group that has ended and is empty.
func (p *parser) withoutRules(g *Group) {
	if g == nil || len(g.Rules) > 0 || len(g.Agents) == 0 {
		return
	}
	line := p.line
	p.line = g.Agents[len(g.Agents)-1].Line
	p.warn(WarnNoRules, "no rules follow: everything is allowed to these crawlers")
	p.line = line
}

func (p *parser) checkExtension(k key, value []byte) {
	ok := true
	switch k {
	case keyCrawlDelay:
		_, ok = parseDelay(string(value))
	case keyRequestRate:
		_, ok = parseRate(string(value))
	case keyVisitTime:
		_, ok = parseWindow(string(value))
	}
	if !ok {
		p.warn(WarnValue, "%s cannot be read: %s", k, quote(value))
	}
}

func (p *parser) checkSitemap(value string) {
	for _, ref := range sitemapRefs(value) {
		scheme, _, absolute := strings.Cut(ref, ":")
		switch {
		case absolute && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")):
		case absolute && !strings.ContainsAny(scheme, "/?"):
			p.warn(WarnSitemap, "not http or https: %s", quote([]byte(ref)))
		default:
			p.warn(WarnSitemap, "not an absolute URL, not every crawler resolves it: %s", quote([]byte(ref)))
		}
	}
}
